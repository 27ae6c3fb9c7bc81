import { eventsOf } from "./events.js"

const soonMs = 1_000
const latestMs = 30_000

/**
 * Follows `path`, a stream of server-sent events that the server ends now and then, until the
 * returned function is called.
 * States: connecting -> live -> (end of a stream) live; after a failure `broken`, and again after a
 * pause that doubles. A hidden page asks for nothing: `paused`.
 */
export const watch = ({ api, path, onEvent, onState, page, after }) => {
  const abort = new AbortController()
  let cancel = () => {}
  let pauseMs = soonMs

  const later = (ms) => {
    cancel = after(ms, follow)
  }
  const follow = async () => {
    if (page.hidden) {
      onState("paused")
      return page.addEventListener("visibilitychange", follow, { once: true, signal: abort.signal })
    }
    try {
      const reply = await api.send("GET", path, { signal: abort.signal })
      onState("live")
      for await (const event of eventsOf(reply.body)) {
        if (event.error) throw new Error(event.error.code)
        pauseMs = soonMs
        onEvent(event)
      }
      later(0)
    } catch {
      if (abort.signal.aborted) return
      onState("broken")
      later(pauseMs)
      pauseMs = Math.min(2 * pauseMs, latestMs)
    }
  }
  onState("connecting")
  follow()
  return () => {
    abort.abort()
    cancel()
  }
}
