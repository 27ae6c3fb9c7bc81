import { useEffect, useState } from "preact/hooks"

const readyMs = 15_000
const waitingMs = 2_000

/** `/readyz` has a body also when the server is not ready. */
const ask = async (path) => (await fetch(path)).json()

const look = async () => {
  const [ready, listed] = await Promise.all([ask("/readyz"), fetch("/v1/models")])
  // a server that starts or stops lists none, and nobody's work with one is to go
  if (!listed.ok) return { status: ready.status }
  const models = await listed.json()
  const states = new Map((ready.models ?? []).map((state) => [state.id, state]))
  return {
    status: ready.status,
    models: models.data.map((model) => ({
      ...model,
      state: states.get(model.id) ?? { state: "waiting" },
    })),
  }
}

/** The models and their states, polled while the page is visible. */
export const useModels = () => {
  const [seen, show] = useState({ status: undefined, models: [] })
  useEffect(() => {
    let timer
    let isOver = false
    const poll = async () => {
      const next = document.hidden
        ? undefined
        : await look().catch(() => ({ status: "unreachable" }))
      if (isOver) return
      if (next) show((last) => ({ ...last, ...next }))
      timer = setTimeout(poll, next?.status === "ready" ? readyMs : waitingMs)
    }
    poll()
    return () => {
      isOver = true
      clearTimeout(timer)
    }
  }, [])
  return seen
}
