import { makeStore } from "./store.js"

/**
 * The session of this browser.
 * An administrator's: in -> seeing another account (see), with the own session kept beside it -> in again, with why it `ended`
 * (back, or as below).
 * States: out -> in (begin) -> out, with a reason: "left" (signed out), "expired" (24 h are over), "refused" (the server rejects it),
 * "changed" (a new password ended all sessions), "elsewhere" (signed out in another tab),
 * "deleted" (the account is gone).
 */
export const makeSession = ({ persisted, nowMs, after }) => {
  const isOpen = (state) => state?.expiresAtMs > nowMs()
  const read = () => {
    const kept = persisted.read()
    if (typeof kept?.token !== "string") return {}
    return [kept, kept.own].find(isOpen) ?? { reason: "expired" }
  }
  const store = makeStore({})
  let cancel = () => {}

  const end = (reason) => {
    const { own } = store.get()
    cancel()
    persisted.write(isOpen(own) ? own : undefined)
    apply(isOpen(own) ? { ...own, ended: reason } : { reason })
  }
  const apply = (state) => {
    cancel()
    if (state.token) cancel = after(state.expiresAtMs - nowMs(), () => end("expired"))
    store.set(state)
  }
  apply(read())

  return {
    ...store,
    /** `key`: for `/v1`, as long as the session. */
    see: ({ token, expires_at, account, api_key: key }) => {
      const { ended: _, ...own } = store.get()
      const state = { token, expiresAtMs: expires_at * 1000, accountId: account.id, key, own }
      persisted.write(state)
      apply(state)
    },
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
