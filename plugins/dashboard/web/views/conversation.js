import { useMemo, useRef, useState } from "preact/hooks"
import { Problem } from "../api.js"
import { useApp } from "../app.js"
import { requestOf } from "../chat-request.js"
import { eventsOf } from "../events.js"
import { makePersisted } from "../store.js"
import { makeTalks } from "../talks.js"
import { forget } from "./attachments.js"

/** Adds a chunk to the last message: text, thoughts, then usage and cost. */
const follow = async (reply, patch) => {
  patch({ callId: reply.headers.get("x-call-id") })
  let [content, thoughts] = ["", ""]
  for await (const event of eventsOf(reply.body)) {
    if (event.error) throw new Problem({ status: 500, ...event.error })
    const delta = event.choices?.[0]?.delta ?? {}
    content += delta.content ?? ""
    thoughts += delta.reasoning_content ?? ""
    patch({ content, thoughts, ...(event.usage && { usage: event.usage }) })
  }
}

const problemOf = (error) => {
  if (error instanceof Problem) return error
  return error instanceof SyntaxError
    ? new Problem({
        status: 400,
        code: "invalid_request_error",
        param: "schema",
        message: error.message,
      })
    : new Problem({})
}

const isPartOfTalk = ({ problem, content }) => !problem && content !== ""

const makeId = () => String(crypto.getRandomValues(new Uint32Array(1))[0])

const useTalks = () => {
  const { session } = useApp()
  const { accountId = "" } = session.get()
  return useMemo(
    () =>
      makeTalks({
        persisted: makePersisted(() => localStorage, `rakit.talks.${accountId}`),
        makeId,
      }),
    [accountId],
  )
}

/**
 * Messages of one conversation: `{ role, content, thoughts?, files?, usage?, callId?, problem?, isCut? }`; the last one grows while `busy`.
 * idle -> busy (ask, again) -> idle (answered, refused, or stopped: a stopped answer stays and is charged)
 */
export const useConversation = () => {
  const { v1, account } = useApp()
  const talks = useTalks()
  const stopper = useRef(undefined)
  const current = useRef(talks.makeId())
  const newest = useRef([])
  const [messages, show] = useState([])
  const [busy, setBusy] = useState(false)

  const set = (next) => {
    newest.current = next
    show(next)
  }
  const patch = (more) =>
    set([...newest.current.slice(0, -1), { ...newest.current.at(-1), ...more }])
  const answer = async (settings, before) => {
    stopper.current = new AbortController()
    set([...before, { role: "assistant", content: "" }])
    setBusy(true)
    try {
      const { signal } = stopper.current
      const body = {
        ...requestOf(settings, before),
        stream: true,
        stream_options: { include_usage: true },
      }
      await follow(await v1.send("POST", "/v1/chat/completions", { body, signal }), patch)
    } catch (error) {
      patch(error.name === "AbortError" ? { isCut: true } : { problem: problemOf(error) })
    } finally {
      setBusy(false)
      talks.keep(current.current, newest.current)
      account.get()?.refresh()
    }
  }
  // a refused message is not part of the conversation that is sent
  const ask = (settings, { text, files }) =>
    answer(settings, [
      ...newest.current.filter(isPartOfTalk),
      { role: "user", content: text, files },
    ])
  /** Asks for another answer to the last question. */
  const again = (settings) => {
    const last = newest.current.findLastIndex(({ role }) => role === "user")
    return answer(settings, newest.current.slice(0, last + 1))
  }
  const open = (talk) => {
    forget(newest.current)
    current.current = talk?.id ?? talks.makeId()
    set(talk?.messages ?? [])
  }
  const remove = (id) => {
    talks.forget(id)
    if (id === current.current) open(undefined)
    else set([...newest.current])
  }
  const stop = () => stopper.current?.abort()
  return {
    messages,
    busy,
    ask,
    again,
    stop,
    open,
    remove,
    current: current.current,
    talks: talks.all(),
  }
}
