import type { ModelId } from "../ids.ts"
import type { Usage, UsageByModel } from "../usage.ts"

/** Usage and stage times of one call, kept beside the stream: a stream that is cut has no last event. */
export interface Meter {
  meter(model: ModelId, soFar: Usage): void
  used(): UsageByModel
  time(stage: string, durationMs: number): void
  /** `queue;dur=1.2, prefill;dur=30` */
  serverTiming(): string
}

export const makeMeter = (): Meter => {
  const usage = new Map<ModelId, Usage>()
  const times = new Map<string, number>()
  return {
    meter: (model, soFar) => void usage.set(model, soFar),
    used: () => Object.fromEntries(usage),
    time: (stage, durationMs) => void times.set(stage, (times.get(stage) ?? 0) + durationMs),
    serverTiming: () => [...times].map(([stage, ms]) => `${stage};dur=${Math.round(ms * 100) / 100}`).join(", "),
  }
}
