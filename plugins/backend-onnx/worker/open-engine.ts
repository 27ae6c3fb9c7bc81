import type { EngineSpec } from "./protocol.ts"
import type { ModelRunner } from "./scheduler.ts"

/** A model that is open in this thread. */
export interface OpenEngine<Job, Event, Info, Started> {
  readonly info: Info
  start(job: Job, emit: (event: Event) => void): Started
  /** Works on what was started. */
  readonly runner: ModelRunner<Started>
  close(): Promise<void>
  /** How much of all room a job takes, at worst, and how much there is; without them jobs take none. */
  readonly capacity?: number
  sizeOf?(job: Job): number
}

/** Opens a model; throws `ModelFileError`. */
export type EngineOpener<Job, Event, Info, Started> = (
  spec: EngineSpec,
  progress: (detail: string) => void,
) => Promise<OpenEngine<Job, Event, Info, Started>>
