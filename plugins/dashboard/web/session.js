import { makeStore } from "./store.js"

/**
 * The session of this browser.
 * States: out -> in (begin) -> out, with a reason: "left" (signed out), "expired" (24 h are over), "refused" (the server rejects it),
 * "changed" (a new password ended all sessions), "elsewhere" (signed out in another tab),
 * "deleted" (the account is gone).
 */
export const makeSession = ({ persisted, nowMs, after }) => {
  const read = () => {
    const kept = persisted.read()
    if (typeof kept?.token !== "string") return {}
    return kept.expiresAtMs > nowMs() ? kept : { reason: "expired" }
  }
  const store = makeStore({})
  let cancel = () => {}

  const end = (reason) => {
    cancel()
    persisted.write(undefined)
    store.set({ reason })
  }
  const apply = (state) => {
    cancel()
    if (state.token) cancel = after(state.expiresAtMs - nowMs(), () => end("expired"))
    store.set(state)
  }
  apply(read())

  return {
    ...store,
    begin: ({ token, expires_at, account }) => {
      const state = { token, expiresAtMs: expires_at * 1000, accountId: account?.id }
      persisted.write(state)
      apply(state)
    },
    end,
    /** Called when another tab signed in or out. */
    reread: () => {
      const next = read()
      if (next.token !== store.get().token)
        apply(next.token || next.reason ? next : { reason: "elsewhere" })
    },
  }
}
