import type { EngineSpec, Priority } from "../../worker/protocol.ts"
import { Scheduler } from "../../worker/scheduler.ts"
import type { DecoderEvent, GenerateRequest } from "../decoder-jobs.ts"
import type { DecoderJob } from "../decoder-runner.ts"
import { openDecoderEngine } from "../open-decoder-engine.ts"

/** The answer of a request and its usage. */
export interface Said {
  readonly text: string
  readonly tokens: number
  readonly events: readonly DecoderEvent[]
  /** Undefined when it was cancelled. */
  readonly end: "done" | "busy" | string | undefined
  readonly cacheReadTokens: number
  readonly cacheWriteTokens: number
}

export interface Ask extends Partial<Omit<GenerateRequest, "kind">> {
  readonly promptIds: Int32Array
  readonly account?: string
  readonly priority?: Priority
  readonly waitMs?: number
  /** Cancels after so many events. */
  readonly cancelAfter?: number
}

const greedy = { temperature: 0, topP: 1, frequencyPenalty: 0, presencePenalty: 0, logitBias: [] }

const said = (events: readonly DecoderEvent[], end: string | undefined): Said => {
  const read = events.findLast((event) => event.type === "prefilled")
  return {
    text: events
      .map((event) => (event.type === "token" || event.type === "finish" ? event.text : ""))
      .join(""),
    tokens: events.filter((event) => event.type === "token").length,
    events,
    end,
    cacheReadTokens: read?.cacheReadTokens ?? 0,
    cacheWriteTokens: read?.cacheWriteTokens ?? 0,
  }
}

/** A chat engine in the test's own thread, for tests that look inside. */
export const openInProcess = async (
  spec: Pick<EngineSpec, "path" | "graphs"> & Partial<EngineSpec>,
) => {
  const whole: EngineSpec = {
    kind: "decoder",
    precision: "fp32",
    threads: 1,
    slots: 8,
    kvBytes: 2 ** 28,
    prefixCacheBytes: 2 ** 24,
    speculation: true,
    ...spec,
  }
  const engine = await openDecoderEngine(whole, () => {})
  const ends = new Map<number, (end: string) => void>()
  const finish = (id: number, end: string) => ends.get(id)?.(end)
  const scheduler = new Scheduler<DecoderJob>(
    engine.runner,
    { slots: whole.slots, capacity: engine.capacity!, nowMs: () => performance.now() },
    {
      done: (id) => finish(id, "done"),
      busy: (id) => finish(id, "busy"),
      failed: (id, cause) => finish(id, (cause as Error).message),
    },
  )
  let nextId = 0
  const ask = ({
    account = "a",
    priority = "realtime",
    waitMs = 60_000,
    cancelAfter,
    ...request
  }: Ask): Promise<Said> =>
    new Promise((resolve) => {
      const id = nextId++
      const events: DecoderEvent[] = []
      const job: GenerateRequest = {
        kind: "generate",
        owner: account,
        cacheBreakpoints: [],
        maxTokens: 12,
        sampler: greedy,
        seed: 1,
        stop: [],
        ...request,
      }
      ends.set(id, (end) => resolve(said(events, end)))
      const emit = (event: DecoderEvent) => {
        events.push(event)
        if (events.length !== cancelAfter) return
        scheduler.cancel(id)
        resolve(said(events, undefined))
      }
      scheduler.submit({
        id,
        account,
        priority,
        waitMs,
        size: engine.sizeOf!(job),
        start: () => engine.start(job, emit),
      })
      if (cancelAfter !== 0) return
      scheduler.cancel(id)
      resolve(said(events, undefined))
    })
  const close = async () => {
    await scheduler.stop()
    await engine.close()
  }
  return { ask, close, info: engine.info, scheduler }
}
