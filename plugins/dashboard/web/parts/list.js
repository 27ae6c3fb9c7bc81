import { useEffect, useRef, useState } from "preact/hooks"
import { useApp } from "../app.js"

const nothing = { items: undefined, hasMore: false, busy: true, problem: undefined }

/** A list of the API, newest first, a page at a time. */
export const useList = (path, query = {}) => {
  const { api } = useApp()
  const [state, set] = useState(nothing)
  const round = useRef(0)

  const ask = async (before, after) => {
    const mine = ++round.current
    set({ ...before, busy: true, problem: undefined })
    const next = await api.get(path, { limit: 50, ...query, after }).then(
      (page) => ({
        items: [...(before.items ?? []), ...page.data],
        hasMore: page.has_more,
        last: page.last_id,
        busy: false,
      }),
      (problem) => ({ ...before, busy: false, problem }),
    )
    if (mine === round.current) set(next)
  }
  const reload = () => ask(nothing)
  useEffect(() => {
    reload()
    return () => {
      round.current++
    }
  }, [path, JSON.stringify(query)])

  return {
    ...state,
    reload,
    more: () => ask(state, state.last),
    /** One of them has changed, or is new. */
    put: (item) =>
      set((now) => ({
        ...now,
        items: now.items?.some(({ id }) => id === item.id)
          ? now.items.map((one) => (one.id === item.id ? item : one))
          : [item, ...(now.items ?? [])],
      })),
  }
}
