import { useMemo, useRef, useState } from "preact/hooks"
import { Problem } from "../api.js"
import { useApp } from "../app.js"
import { requestOf } from "../chat-request.js"
import { isSaid, saidBefore, withCallDeltas } from "../chat-tools.js"
import { eventsOf } from "../events.js"
import { makePersisted } from "../store.js"
import { makeTalks } from "../talks.js"
import { forget } from "./attachments.js"

/** Adds a chunk to the last message: text, thoughts, calls of tools, then the reason of the end, usage and cost. */
const follow = async (reply, patch) => {
  patch({ callId: reply.headers.get("x-call-id") })
  let [content, thoughts, toolCalls] = ["", "", []]
  for await (const event of eventsOf(reply.body)) {
    if (event.error) throw new Problem({ status: 500, ...event.error })
    const { delta = {}, finish_reason: finish } = event.choices?.[0] ?? {}
    content += delta.content ?? ""
    thoughts += delta.reasoning_content ?? ""
    toolCalls = withCallDeltas(toolCalls, delta.tool_calls)
    const { usage } = event
    patch({ content, thoughts, toolCalls, ...(finish && { finish }), ...(usage && { usage }) })
  }
}

const problemOf = (error) => {
  if (error instanceof Problem) return error
  return error instanceof SyntaxError
    ? new Problem({ code: "schema_not_json", param: "schema", message: error.message })
    : new Problem({})
}

/** What an answer that did not come to its end says; half a call can't be made. */
const endOf = (error) =>
  error.name === "AbortError" ? { isCut: true, toolCalls: [] } : { problem: problemOf(error) }

const asked = (v1, settings, messages, signal) => {
  const body = {
    ...requestOf(settings, messages),
    stream: true,
    stream_options: { include_usage: true },
  }
  return v1.send("POST", "/v1/chat/completions", { body, signal })
}

const resultsOf = ({ toolCalls }, results) =>
  toolCalls.map(({ id, name }, index) => ({
    role: "tool",
    toolCallId: id,
    name,
    content: results[index],
  }))

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

/** The messages that are shown; `newest` has them before they are drawn, `patch` changes the last one. */
const useMessages = () => {
  const newest = useRef([])
  const [messages, show] = useState([])
  const set = (next) => {
    newest.current = next
    show(next)
  }
  const patch = (more) =>
    set([...newest.current.slice(0, -1), { ...newest.current.at(-1), ...more }])
  return { messages, newest, set, patch }
}

/** Asks for answers; `keep` is called when one has ended. */
const useAnswers = ({ newest, set, patch }, keep) => {
  const { v1, account } = useApp()
  const stopper = useRef(undefined)
  const [busy, setBusy] = useState(false)

  const answer = async (settings, before) => {
    // a question may be sent while the last one is answered again
    stop()
    const mine = new AbortController()
    stopper.current = mine
    set([...before, { role: "assistant", content: "" }])
    setBusy(true)
    // another conversation may be open when the end comes
    const patchMine = (more) => {
      if (stopper.current === mine) patch(more)
    }
    try {
      await follow(await asked(v1, settings, before, mine.signal), patchMine)
    } catch (error) {
      patchMine(endOf(error))
    } finally {
      if (stopper.current === mine) end()
      account.get()?.refresh()
    }
  }
  const end = () => {
    stopper.current = undefined
    setBusy(false)
    keep()
  }
  const stop = () => stopper.current?.abort()
  /** What came of an answer stays, but for calls: half of one can't be sent again. */
  const cut = () => {
    stop()
    if (stopper.current) patch({ isCut: true, toolCalls: [] })
  }
  const leave = () => {
    cut()
    if (stopper.current) end()
    forget(newest.current)
  }
  return { busy, answer, stop, cut, leave }
}

/**
 * Messages of one conversation: `{ role, content, thoughts?, files?, toolCalls?, toolCallId?, name?, finish?, usage?, callId?, problem?, isCut? }`; the last one grows while `busy`.
 * idle -> busy (ask, again) -> idle (answered, refused, or stopped: a stopped answer stays and is charged)
 */
export const useConversation = () => {
  const talks = useTalks()
  const current = useRef(talks.makeId())
  const all = useMessages()
  const { messages, newest, set } = all
  const keep = () => talks.keep(current.current, newest.current)
  const { busy, answer, stop, cut, leave } = useAnswers(all, keep)

  // a refused message is not part of the conversation that is sent
  const ask = (settings, { text, files }) => {
    cut()
    const said = saidBefore(newest.current)
    forget(newest.current.filter((message) => !said.includes(message)))
    return answer(settings, [...said, { role: "user", content: text, files }])
  }
  /** Goes on behind the last message's calls; `results` are texts in their order. */
  const giveResults = (settings, results) => {
    const said = newest.current
    return answer(settings, [...said.filter(isSaid), ...resultsOf(said.at(-1), results)])
  }
  /** Asks for another answer to the last question, or to the last results. */
  const again = (settings) => {
    const last = newest.current.findLastIndex(({ role }) => role !== "assistant")
    return answer(settings, newest.current.slice(0, last + 1))
  }
  const open = (talk) => {
    leave()
    current.current = talk?.id ?? talks.makeId()
    set(talk?.messages ?? [])
  }
  const remove = (id) => {
    if (id === current.current) open(undefined)
    talks.forget(id)
    set([...newest.current])
  }
  return {
    messages,
    busy,
    ask,
    giveResults,
    again,
    stop,
    leave,
    open,
    remove,
    current: current.current,
    talks: talks.all(),
  }
}
