import { useEffect, useState } from "preact/hooks"

/** What `ask` answers, asked anew whenever `inputs` change; the last answer stays while the next is on its way. */
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
