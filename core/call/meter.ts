import type { Json } from "../json.ts"
import type { Clock } from "../services/clock.ts"
import type { ModelId } from "../services/ids.ts"
import type { Usage, UsageByModel } from "../usage.ts"

/** A stage of a call; times of the monotonic clock. One that came in parts has their sum as its duration. */
export interface Stage {
  readonly startMs: number
  readonly endMs: number
  readonly durationMs: number
}

export type Facts = Readonly<Record<string, Json>>

/**
 * Usage and stage times of one call, metered beside the stream, because a stream that is cut has no
 * last event.
 */
export interface Meter {
  meter(model: ModelId, soFar: Usage): void
  used(): UsageByModel
  /** Facts about the answer, for its receipt; undefined before the first. */
  note(facts: Facts): void
  noted(): Facts | undefined
  /** Called when the stage, or a part of it, ends. */
  time(stage: string, durationMs: number): void
  /** In the order in which they first ended. */
  stages(): ReadonlyMap<string, Stage>
  /**
   * `auth;dur=0.1, limits;dur=1.2, hold;dur=0.3, queue;dur=1.2, prefill;dur=30, first_token;dur=32, total;dur=33`:
   * in the order in which the stages ended, then the times since the request began.
   */
  serverTiming(): string
}

const shown = (stage: string, ms: number) => `${stage};dur=${Math.round(ms * 100) / 100}`

/** Begins with the request: `total` is the time since. */
export const makeMeter = (clock: Clock): Meter => {
  const usage: Record<ModelId, Usage> = {}
  const stages = new Map<string, { -readonly [Key in keyof Stage]: number }>()
  let facts: Facts | undefined
  let first = ""
  const startedMs = clock.monotonicMs()
  const since = (name: string) => shown(name, clock.monotonicMs() - startedMs)
  return {
    meter: (model, soFar) => {
      if (soFar.outputTokens > 0) first ||= `${since("first_token")}, `
      usage[model] = soFar
    },
    // a copy: what is settled stays as it was
    used: () => Object.assign({}, usage),
    note: (more) => {
      facts = Object.assign({}, facts, more)
    },
    noted: () => facts,
    time: (stage, durationMs) => {
      const endMs = clock.monotonicMs()
      const known = stages.get(stage)
      if (!known) return void stages.set(stage, { startMs: endMs - durationMs, endMs, durationMs })
      known.endMs = endMs
      known.durationMs += durationMs
    },
    stages: () => stages,
    serverTiming: () => {
      let text = ""
      for (const [stage, { durationMs }] of stages) text += `${shown(stage, durationMs)}, `
      return text + first + since("total")
    },
  }
}
