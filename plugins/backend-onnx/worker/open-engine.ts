import type { EngineSpec, ThreadStats } from "./protocol.ts"
import type { ModelRunner } from "./scheduler.ts"

/** A model that is open in this thread. */
export interface OpenEngine<Job, Event, Info, Started> {
  readonly info: Info
  start(job: Job, emit: (event: Event) => void): Started
  /** Runs the started jobs. */
  readonly runner: ModelRunner<Started>
  close(): Promise<void>
  /**
   * Total capacity, and the worst-case share of a job in it, in the engine's unit (tokens of a
   * decoder's key-value memory). Absent: there is no limit, and each job counts as one.
   */
  readonly capacity?: number
  sizeOf?(job: Job): number
  /** Absent where there is no prefix cache. */
  prefixStats?(): Omit<ThreadStats, "kvCacheUsage">
}

/** Opens a model; throws `ModelFileError`. */
export type EngineOpener<Job, Event, Info, Started> = (
  spec: EngineSpec,
  progress: (detail: string) => void,
) => Promise<OpenEngine<Job, Event, Info, Started>>
