import { makeStore } from "./store.js"

/**
 * The session of this browser.
 * out -> in (begin) -> out, with a reason: "left" (signed out), "expired" (24 h are over), "refused" (the server no longer knows it),
 * "changed" (a new password ended all sessions), "elsewhere" (in another tab)
 */
export const makeSession = ({ drawer, nowMs, after }) => {
  const read = () => {
    const kept = drawer.read()
    if (typeof kept?.token !== "string") return {}
    return kept.expiresAtMs > nowMs() ? kept : { reason: "expired" }
  }
  const store = makeStore({})
  let cancel = () => {}

  const end = (reason) => {
    cancel()
    drawer.write(undefined)
    store.set({ reason })
  }
  const take = (state) => {
    cancel()
    if (state.token) cancel = after(state.expiresAtMs - nowMs(), () => end("expired"))
    store.set(state)
  }
  take(read())

  return {
    ...store,
    begin: ({ token, expires_at }) => {
      const state = { token, expiresAtMs: expires_at * 1000 }
      drawer.write(state)
      take(state)
    },
    end,
    /** Another tab signed in or out. */
    reread: () => {
      const next = read()
      if (next.token !== store.get().token)
        take(next.token || next.reason ? next : { reason: "elsewhere" })
    },
  }
}
