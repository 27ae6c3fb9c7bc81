import { useEffect, useRef, useState } from "preact/hooks"
import { useApp } from "../app.js"

const nothing = { items: undefined, hasMore: false, busy: true, problem: undefined }

/** A phone shows a row as a block: its pages are shorter. */
export const rowsAtOnce = (most) => (matchMedia("(max-width: 40rem)").matches ? 20 : most)

/** What is shown, with the first page read again: what the page lacks of its span has left the list. */
export const refreshed = (now, page) => {
  const items = now.items ?? []
  const end = items.findIndex(({ id }) => id === page.data.at(-1)?.id)
  // between the page and what is shown there may be more
  if (!page.has_more || end < 0)
    return { ...now, items: page.data, hasMore: page.has_more, last: page.last_id }
  return { ...now, items: [...page.data, ...items.slice(end + 1)] }
}

/** Loads a list of the API page by page, newest first; `from`: what asks, the session or a key. */
export const useList = (path, query = {}, from = undefined) => {
  const { api } = useApp()
  const [state, set] = useState(nothing)
  const round = useRef(0)
  const puts = useRef(0)

  const ask = async (before, after) => {
    const mine = ++round.current
    set({ ...before, busy: true, problem: undefined })
    const next = await (from ?? api).get(path, { limit: rowsAtOnce(50), ...query, after }).then(
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
  /** Reads the first page again and changes what is shown in place; a failure leaves it as it is. */
  const refresh = async () => {
    const mine = round.current
    const before = puts.current
    const page = await (from ?? api)
      .get(path, { limit: rowsAtOnce(50), ...query })
      .catch(() => undefined)
    // a page that was asked for before an item was put does not have it
    if (!page || mine !== round.current || before !== puts.current) return
    set((now) => refreshed(now, page))
  }
  useEffect(() => {
    reload()
    return () => {
      round.current++
    }
  }, [path, JSON.stringify(query)])

  return {
    ...state,
    reload,
    refresh,
    more: () => ask(state, state.last),
    /** Replaces an item, or adds a new one. */
    put: (item) => {
      puts.current++
      set((now) => ({
        ...now,
        items: now.items?.some(({ id }) => id === item.id)
          ? now.items.map((one) => (one.id === item.id ? item : one))
          : [item, ...(now.items ?? [])],
      }))
    },
  }
}
