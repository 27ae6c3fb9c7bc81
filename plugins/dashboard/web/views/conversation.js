import { useRef, useState } from "preact/hooks"
import { Problem } from "../api.js"
import { useApp } from "../app.js"
import { eventsOf } from "../events.js"
import { forget } from "./attachments.js"

const spareMs = 30_000

/** An API key for 15 minutes, created when it is needed: a session cannot call /v1. */
const usePlaygroundKey = () => {
  const { api, nowMs } = useApp()
  const kept = useRef(undefined)
  return async () => {
    if (!kept.current || kept.current.expires_at * 1000 - spareMs < nowMs())
      kept.current = await api.post("/dashboard/playground-key")
    return kept.current.key
  }
}

const requestOf = ({ model, system, temperature, maxTokens }, messages) => ({
  model,
  messages: [
    ...(system ? [{ role: "system", content: system }] : []),
    ...messages.map(({ role, content, files = [] }) => ({
      role,
      content: files.length
        ? [...files.map(({ block }) => block), { type: "text", text: content }]
        : content,
    })),
  ],
  ...(temperature && { temperature: Number(temperature) }),
  ...(maxTokens && { max_tokens: Number(maxTokens) }),
  stream: true,
  stream_options: { include_usage: true },
})

/** Adds a chunk to the last message: text, then usage and cost. */
const follow = async (reply, patch) => {
  patch({ callId: reply.headers.get("x-call-id") })
  let content = ""
  for await (const event of eventsOf(reply.body)) {
    if (event.error) throw new Problem({ status: 500, ...event.error })
    content += event.choices?.[0]?.delta?.content ?? ""
    patch({ content, ...(event.usage && { usage: event.usage }) })
  }
}

/**
 * Messages of one conversation: `{ role, content, files?, usage?, callId?, problem?, isCut? }`; the last one grows while `busy`.
 * idle -> busy (ask) -> idle (answered, refused, or stopped: a stopped answer stays and is charged)
 */
export const useConversation = () => {
  const { api, account } = useApp()
  const keyFor = usePlaygroundKey()
  const stopper = useRef(undefined)
  const [messages, set] = useState([])
  const [busy, setBusy] = useState(false)

  const patch = (more) => set((all) => [...all.slice(0, -1), { ...all.at(-1), ...more }])
  const ask = async (settings, { text, files }) => {
    // a refused message is not part of the conversation that is sent
    const before = [
      ...messages.filter(({ problem, content }) => !problem && content !== ""),
      { role: "user", content: text, files },
    ]
    stopper.current = new AbortController()
    set([...before, { role: "assistant", content: "" }])
    setBusy(true)
    try {
      const { signal } = stopper.current
      await follow(
        await api.send("POST", "/v1/chat/completions", {
          body: requestOf(settings, before),
          key: await keyFor(),
          signal,
        }),
        patch,
      )
    } catch (error) {
      patch(
        error.name === "AbortError"
          ? { isCut: true }
          : { problem: error instanceof Problem ? error : new Problem({}) },
      )
    } finally {
      setBusy(false)
      account.get()?.refresh()
    }
  }
  const clear = () => {
    forget(messages)
    set([])
  }
  return { messages, busy, ask, stop: () => stopper.current?.abort(), clear }
}
