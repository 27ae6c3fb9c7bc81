import { setTimeout as wait } from "node:timers/promises"
import type { ServerProcess } from "../deployment/server-process.ts"
import { residentMb } from "../startup/memory.ts"

/** What honest clients saw meanwhile. */
export interface Seen {
  /** `GET /healthz`, in ms from when it was due. */
  readonly health: readonly number[]
  /** From a short chat to its first token, in ms. */
  readonly firstTokens: readonly number[]
  /** Honest calls without a whole answer. */
  readonly failures: number
  readonly mostMb: number
}

const timeout = () => AbortSignal.timeout(60_000)

const healthOnce = async (url: string): Promise<void> => {
  const reply = await fetch(`${url}/healthz`, { signal: timeout() })
  await reply.text()
  if (reply.status !== 200) throw new Error(`/healthz: ${reply.status}`)
}

/** Resolves with the time to the first token, after the whole stream. */
const chatOnce = async (url: string, apiKey: string, turn: number): Promise<number> => {
  const startedMs = performance.now()
  const reply = await fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${apiKey}`, "content-type": "application/json" },
    body: JSON.stringify({
      model: "svc-lyt",
      max_tokens: 8,
      stream: true,
      messages: [{ role: "user", content: `${turn}: write a line about the sea.` }],
    }),
    signal: timeout(),
  })
  if (reply.status !== 200) throw new Error(`chat: ${reply.status} ${await reply.text()}`)
  let text = ""
  let firstMs = Number.NaN
  for await (const chunk of reply.body!.pipeThrough(new TextDecoderStream())) {
    text += chunk
    if (Number.isNaN(firstMs) && /"content":"[^"]/.test(text))
      firstMs = performance.now() - startedMs
  }
  if (!text.includes("[DONE]")) throw new Error("chat: the stream was cut")
  return firstMs
}

/** Asks as honest clients do until `during` resolves: /healthz 50 times a second, a chat at a time. */
export const probe = async (
  { url, pid }: ServerProcess,
  apiKey: string,
  during: Promise<unknown>,
): Promise<Seen> => {
  let isOver = false
  const over = during.then(() => {
    isOver = true
  })
  const health: number[] = []
  const firstTokens: number[] = []
  let failures = 0
  let mostMb = 0
  const fail = () => void failures++
  const inFlight = new Set<Promise<void>>()
  const askHealth = async () => {
    for (let dueMs = performance.now(); !isOver; dueMs += 20) {
      await wait(dueMs - performance.now())
      const from = dueMs
      const one = healthOnce(url).then(() => void health.push(performance.now() - from), fail)
      inFlight.add(one.finally(() => inFlight.delete(one)))
      mostMb = Math.max(mostMb, residentMb(pid))
    }
  }
  const askChat = async () => {
    for (let turn = 0; !isOver; turn++) {
      await chatOnce(url, apiKey, turn).then((ms) => void firstTokens.push(ms), fail)
      await wait(20)
    }
  }
  await Promise.all([over, askHealth(), askChat()])
  await Promise.all(inFlight)
  return { health, firstTokens, failures, mostMb }
}
