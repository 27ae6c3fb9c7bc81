import type { Constraints } from "../../grammar/constraint.ts"
import type { DecoderSession } from "../../sessions/decoder.ts"
import { TextToTokenEncoder } from "../../tokenizer/text-to-token-encoder.ts"
import { Scheduler } from "../../worker/scheduler.ts"
import { CachedDecoder } from "../cached-decoder.ts"
import type { DecoderEvent, GenerateRequest } from "../decoder-jobs.ts"
import { type DecoderJob, DecoderRunner } from "../decoder-runner.ts"
import { GenerateJob } from "../generate-job.ts"
import { PrefixCache } from "../prefix-cache.ts"

export interface FakeModel {
  /** The text of each token; empty for control tokens. */
  readonly tokens: readonly string[]
  readonly endTokens: readonly number[]
  readonly constraints: Constraints
  readonly speculation?: boolean
  /** Returns the logits behind a token at position `at` of its sequence. */
  logits(token: number, at: number): ArrayLike<number>
}

export interface FakeAnswer {
  readonly text: string
  readonly reason: "stop" | "length" | undefined
  readonly tokens: number
  readonly events: readonly DecoderEvent[]
  /** `done`, or why it failed; undefined when it was cancelled. */
  readonly end: string | undefined
}

const answerOf = (events: readonly DecoderEvent[], end: string | undefined): FakeAnswer => {
  const finish = events.find((event) => event.type === "finish")
  return {
    text: events
      .map((event) => (event.type === "token" || event.type === "finish" ? event.text : ""))
      .join(""),
    reason: finish?.reason,
    tokens: events.filter((event) => event.type === "token").length,
    events,
    end,
  }
}

/** The whole engine but the model's arithmetic. */
export const openFakeModel = ({
  tokens,
  endTokens,
  constraints,
  logits,
  speculation = true,
}: FakeModel) => {
  const vocabulary = logits(0, 0).length
  let steps = 0
  const decoder: DecoderSession = {
    isInvariant: true,
    shape: { layers: 1, kvHeads: 1, headSize: 1, vocabulary, contextTokens: 10_000 },
    forward: async ({ ids, count, pastLens, logitsAt }) => {
      steps++
      const all = new Float32Array(logitsAt.length * vocabulary)
      for (const [row, at] of logitsAt.entries())
        all.set(
          logits(ids[at]!, pastLens[Math.floor(at / count)]! + (at % count)),
          row * vocabulary,
        )
      return { logits: all, fresh: new Float32Array(2 * ids.length) }
    },
    close: async () => {},
  }
  const session = new CachedDecoder(decoder)
  const bytesOf = (token: number) => Buffer.from(tokens[token] ?? "")
  const prefixes = new PrefixCache(1e6, 8)
  const model = {
    session,
    prefixes,
    endTokens: new Set(endTokens),
    startsWithSpace: false,
    bytesOf,
    vocabulary,
    constraints,
    textEncoder: new TextToTokenEncoder(vocabulary, bytesOf),
  }
  const ends = new Map<number, (end: string) => void>()
  const finish = (id: number, end: string) => ends.get(id)?.(end)
  const scheduler = new Scheduler<DecoderJob>(
    new DecoderRunner(session, { speculation }),
    { slots: 16, capacity: Number.POSITIVE_INFINITY, nowMs: () => 0 },
    {
      done: (id) => finish(id, "done"),
      busy: (id) => finish(id, "busy"),
      failed: (id, cause) => finish(id, (cause as Error).message),
    },
  )
  let nextId = 0
  const ask = (
    request: Partial<GenerateRequest>,
    cancelAfter?: number,
    onEvent?: (event: DecoderEvent) => void,
  ): Promise<FakeAnswer> =>
    new Promise((resolve) => {
      const id = nextId++
      const events: DecoderEvent[] = []
      const sampler = {
        temperature: 1,
        topP: 1,
        frequencyPenalty: 0,
        presencePenalty: 0,
        logitBias: [],
      }
      const promptIds = Int32Array.of(3, 4)
      const job: GenerateRequest = {
        kind: "generate",
        owner: "a",
        promptIds,
        cacheBreakpoints: [],
        maxTokens: 30,
        sampler,
        seed: 1,
        stop: [],
        ...request,
      }
      ends.set(id, (end) => resolve(answerOf(events, end)))
      const emit = (event: DecoderEvent) => {
        events.push(event)
        onEvent?.(event)
        if (events.length !== cancelAfter) return
        scheduler.cancel(id)
        resolve(answerOf(events, undefined))
      }
      scheduler.submit({
        id,
        account: "a",
        priority: "realtime",
        waitMs: 0,
        size: 1,
        start: () => new GenerateJob(model, job, emit),
      })
    })
  return {
    ask,
    steps: () => steps,
    prefixBytes: () => prefixes.bytes,
    stop: () => scheduler.stop(),
    cancel: (id: number) => scheduler.cancel(id),
  }
}
