/** An API key that is about to end may end on the way. */
const spareMs = 30_000

/**
 * Calls `/v1` for the session, which is no API key: with a temporary one of 15 minutes that is made when it is needed, once for all views;
 * an administrator who sees another account has one that only reads.
 */
export const makeV1 = ({ api, session, nowMs }) => {
  let kept
  const make = (token) => {
    kept = { token, made: api.post("/dashboard/playground-key") }
    kept.made.catch(() => {
      kept = undefined
    })
    return kept.made
  }
  const key = async () => {
    const { token, key: readOnly } = session.get()
    if (readOnly) return readOnly
    const made = kept?.token === token ? await kept.made : await make(token)
    const isOver = made.expires_at * 1000 - spareMs < nowMs()
    return isOver ? (await make(token)).key : made.key
  }
  /** The oldest of an account's temporary keys ends early where many are made: the next call has another. */
  const withKey = async (work) => {
    const { token } = session.get()
    const used = await key()
    const mine = kept
    try {
      return await work(used)
    } catch (problem) {
      const isOurs = mine?.token === token && session.get().token === token
      if (problem?.status !== 401 || !isOurs) throw problem
      // another call may have made the next one by now
      if (kept === mine) kept = undefined
      return work(await key())
    }
  }
  const send = (method, path, more = {}) =>
    withKey((key) => api.send(method, path, { ...more, key }))
  const json = async (...request) => (await send(...request)).json()
  return {
    withKey,
    send,
    get: (path, query) => json("GET", path, { query }),
    post: (path, body, more) => json("POST", path, { body, ...more }),
    remove: (path) => json("DELETE", path),
  }
}
