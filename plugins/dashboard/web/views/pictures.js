import { useEffect, useRef, useState } from "preact/hooks"
import { Problem } from "../api.js"
import { useApp } from "../app.js"
import { eventsOf } from "../events.js"
import { bytesOf } from "../image-request.js"

const addressOf = (base64) =>
  URL.createObjectURL(new Blob([bytesOf(base64)], { type: "image/png" }))

const forget = (pictures) => {
  for (const { address } of pictures) if (address) URL.revokeObjectURL(address)
}

const previews = 2

/** Yields what a picture is on its way: `{ address, state }`, at last with usage and size. */
async function* made(v1, path, body, signal) {
  const streamed = { ...body, stream: true, partial_images: previews }
  const reply = await v1.send("POST", path, { body: streamed, signal })
  yield { callId: reply.headers.get("x-call-id") }
  for await (const event of eventsOf(reply.body)) {
    if (event.error) throw new Problem({ status: 500, ...event.error })
    const isDone = event.type.endsWith(".completed")
    const { size, usage, b64_json: base64 } = event
    yield { address: addressOf(base64), ...(isDone && { size, usage, state: "done" }) }
  }
}

/** What a picture that did not come says, and whether the next ones are worth a try. */
const endOf = (error) => {
  if (error.name === "AbortError") return { state: "stopped" }
  return { state: "failed", problem: error instanceof Problem ? error : new Problem({}) }
}

/**
 * Pictures, made one after the other, so that their times can be compared: `{ look, state, address?, size?, usage?, callId?, ms?, problem? }`.
 * waiting -> running (with previews) -> done | failed | stopped; one that is refused for a field ends them all.
 */
export const usePictures = () => {
  const { v1, account, nowMs } = useApp()
  const [pictures, show] = useState([])
  const [busy, setBusy] = useState(false)
  const newest = useRef([])
  const stopper = useRef(undefined)
  const set = (next) => {
    newest.current = next
    show(next)
  }
  const patch = (at, more) => {
    const before = newest.current[at]
    if (more.address && before.address) URL.revokeObjectURL(before.address)
    set(newest.current.with(at, { ...before, ...more }))
  }
  const makeOne = async (at, path, body, signal) => {
    const begunMs = nowMs()
    patch(at, { state: "running" })
    try {
      for await (const more of made(v1, path, body, signal)) patch(at, more)
    } catch (error) {
      if (error.param) throw error
      patch(at, endOf(error))
    } finally {
      patch(at, { ms: nowMs() - begunMs })
    }
  }
  /** Throws what the API has against a field; the pictures before stay then, if no other came. */
  const make = async (path, bodies, looks) => {
    let replaced = newest.current
    set(looks.map((look) => ({ look, state: "waiting" })))
    stopper.current = new AbortController()
    const { signal } = stopper.current
    setBusy(true)
    try {
      for (const [at, body] of bodies.entries())
        if (signal.aborted) patch(at, { state: "stopped" })
        else await makeOne(at, path, body, signal)
    } catch (refusal) {
      const done = newest.current.filter(({ state }) => state === "done")
      const kept = done.length > 0 ? done : replaced
      if (kept === replaced) replaced = []
      set(kept)
      throw refusal
    } finally {
      forget(replaced)
      setBusy(false)
      account.get()?.refresh()
    }
  }
  const stop = () => stopper.current?.abort()
  useEffect(
    () => () => {
      stop()
      forget(newest.current)
    },
    [],
  )
  return { pictures, busy, make, stop }
}
