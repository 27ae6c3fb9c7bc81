import { setTimeout } from "node:timers/promises"

/** What one request was like; times in ms from when it was sent. */
export interface Sample {
  readonly firstMs: number
  readonly wholeMs: number
  readonly promptTokens: number
  readonly tokens: number
}

export interface Target {
  readonly url: string
  readonly key: string
  readonly model: string
  readonly maxTokens: number
  readonly prompt: string
}

interface Chunk {
  readonly choices?: readonly { readonly delta?: { readonly content?: string | null } }[]
  readonly usage?: { readonly prompt_tokens: number; readonly completion_tokens: number } | null
  readonly error?: { readonly message: string }
}

/** The events of a stream; the last may come without an empty line. */
async function* chunksOf(body: AsyncIterable<Uint8Array>): AsyncGenerator<Chunk> {
  const decoder = new TextDecoder()
  let text = ""
  for await (const bytes of body) {
    text += decoder.decode(bytes, { stream: true })
    const lines = text.split("\n")
    text = lines.pop() ?? ""
    for (const line of lines)
      if (line.startsWith("data: {")) yield JSON.parse(line.slice(6)) as Chunk
  }
}

const limitMs = 600_000

const refusalOf = async (reply: Response): Promise<Error> => {
  const body = (await reply.json().catch(() => ({}))) as Chunk
  return new Error(`${reply.status} ${body.error?.message ?? reply.statusText}`)
}

/** Streams one chat. Rejects when the server refuses it, or ends it early. */
export const sampleOf = async (target: Target, number: number): Promise<Sample> => {
  const startedMs = performance.now()
  const reply = await fetch(`${target.url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${target.key}`, "content-type": "application/json" },
    signal: AbortSignal.timeout(limitMs),
    body: JSON.stringify({
      model: target.model,
      max_tokens: target.maxTokens,
      stream: true,
      stream_options: { include_usage: true },
      // the number first: requests share no beginning that a prefix cache could keep
      messages: [{ role: "user", content: `${number}. ${target.prompt}` }],
    }),
  })
  if (!reply.ok || !reply.body) throw await refusalOf(reply)
  let firstMs: number | undefined
  let usage: NonNullable<Chunk["usage"]> | undefined
  for await (const chunk of chunksOf(reply.body)) {
    if (chunk.error) throw new Error(chunk.error.message)
    if (chunk.choices?.[0]?.delta?.content) firstMs ??= performance.now() - startedMs
    usage = chunk.usage ?? usage
  }
  const wholeMs = performance.now() - startedMs
  if (!usage) throw new Error("the stream ended without its usage")
  return {
    firstMs: firstMs ?? wholeMs,
    wholeMs,
    promptTokens: usage.prompt_tokens,
    tokens: usage.completion_tokens,
  }
}

const readyWithinMs = 300_000

/** Asks for one token, and again while the model is loading. Rejects with another refusal. */
export const whenReady = async (target: Target, onWait: (reason: string) => void) => {
  const untilMs = performance.now() + readyWithinMs
  for (;;) {
    try {
      return await sampleOf({ ...target, maxTokens: 1 }, 0)
    } catch (error) {
      const { message } = error as Error
      if (!message.startsWith("503 ") || performance.now() > untilMs) throw error
      onWait(message)
      await setTimeout(1_000)
    }
  }
}

export interface Load {
  readonly samples: readonly Sample[]
  /** Why requests failed, with how often. */
  readonly failures: ReadonlyMap<string, number>
  readonly seconds: number
}

/** Keeps `parallel` requests open until `requests` were sent. */
export const runLoad = async (
  target: Target,
  { requests, parallel }: { readonly requests: number; readonly parallel: number },
  onDone: (done: number) => void,
): Promise<Load> => {
  const samples: Sample[] = []
  const failures = new Map<string, number>()
  const startedMs = performance.now()
  let next = 0
  const worker = async () => {
    while (next < requests) {
      const number = ++next
      try {
        samples.push(await sampleOf(target, number))
      } catch (error) {
        const reason = (error as Error).message
        failures.set(reason, (failures.get(reason) ?? 0) + 1)
      }
      onDone(samples.length + [...failures.values()].reduce((sum, n) => sum + n, 0))
    }
  }
  await Promise.all(Array.from({ length: Math.min(parallel, requests) }, worker))
  return { samples, failures, seconds: (performance.now() - startedMs) / 1000 }
}
