import type { DecoderEvent } from "./decoder-jobs.ts"

type Stage = "prefill" | "decode"

/** Adds up how long the stages of a job take. */
export class StageTimes {
  private readonly spentMs: Map<Stage, number>
  private readonly emit: (event: DecoderEvent) => void

  /** `expected`: stages that are reported also where they took no time. */
  constructor(emit: (event: DecoderEvent) => void, expected: readonly Stage[] = []) {
    this.emit = emit
    this.spentMs = new Map(expected.map((stage) => [stage, 0]))
  }

  add(stage: Stage, durationMs: number): void {
    this.spentMs.set(stage, (this.spentMs.get(stage) ?? 0) + durationMs)
  }

  /** Reports a stage when it ends, so that the time of the report is its end; once. */
  report(stage: Stage): void {
    const durationMs = this.spentMs.get(stage)
    if (durationMs !== undefined) this.emit({ type: "time", stage, durationMs })
    this.spentMs.delete(stage)
  }
}
