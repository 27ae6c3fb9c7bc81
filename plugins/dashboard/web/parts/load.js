import { useEffect, useState } from "preact/hooks"

/** Returns the result of `ask`, which runs again whenever `inputs` change; the last result stays while the next one loads. */
export const useLoad = (ask, inputs) => {
  const [state, set] = useState({ busy: true })
  const [round, again] = useState(0)
  useEffect(() => {
    let isOver = false
    set((last) => ({ ...last, busy: true }))
    const show = (next) => {
      if (!isOver) set(next)
    }
    ask().then(
      (data) => show({ data, busy: false }),
      (problem) => show((last) => ({ ...last, problem, busy: false })),
    )
    return () => {
      isOver = true
    }
  }, [...inputs, round])
  return { ...state, reload: () => again((n) => n + 1) }
}
