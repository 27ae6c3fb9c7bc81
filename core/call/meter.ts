import type { Clock } from "../services/clock.ts"
import type { ModelId } from "../services/ids.ts"
import type { Usage, UsageByModel } from "../usage.ts"

/**
 * Usage and stage times of one call, metered beside the stream, because a stream that is cut has no
 * last event.
 */
export interface Meter {
  meter(model: ModelId, soFar: Usage): void
  used(): UsageByModel
  time(stage: string, durationMs: number): void
  /**
   * `auth;dur=0.1, limits;dur=1.2, hold;dur=0.3, queue;dur=1.2, prefill;dur=30, total;dur=33`: in
   * the order in which the stages ended.
   */
  serverTiming(): string
}

export const makeMeter = (clock: Clock, authMs?: number): Meter => {
  const usage = new Map<ModelId, Usage>()
  const times = new Map<string, number>(authMs === undefined ? [] : [["auth", authMs]])
  const startedMs = clock.monotonicMs() - (authMs ?? 0)
  return {
    meter: (model, soFar) => void usage.set(model, soFar),
    used: () => Object.fromEntries(usage),
    time: (stage, durationMs) => void times.set(stage, (times.get(stage) ?? 0) + durationMs),
    serverTiming: () =>
      [...times, ["total", clock.monotonicMs() - startedMs] as const]
        .map(([stage, ms]) => `${stage};dur=${Math.round(ms * 100) / 100}`)
        .join(", "),
  }
}
