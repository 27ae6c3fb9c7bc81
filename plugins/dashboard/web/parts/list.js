import { useEffect, useRef, useState } from "preact/hooks"
import { useApp } from "../app.js"

const nothing = { items: undefined, hasMore: false, busy: true, problem: undefined }

/** Loads a list of the API page by page, newest first. */
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
    /** Replaces an item, or adds a new one. */
    put: (item) =>
      set((now) => ({
        ...now,
        items: now.items?.some(({ id }) => id === item.id)
          ? now.items.map((one) => (one.id === item.id ? item : one))
          : [item, ...(now.items ?? [])],
      })),
  }
}
