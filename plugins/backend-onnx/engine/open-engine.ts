import type { EngineSpec } from "./protocol.ts"
import type { EngineJob } from "./scheduler.ts"

/** A model that is open in this thread. */
export interface OpenEngine<Job, Event, Info> {
  readonly info: Info
  start(job: Job, emit: (event: Event) => void): EngineJob
  close(): Promise<void>
}

/** Opens a model; throws `ModelFileError`. */
export type EngineOpener<Job, Event, Info> = (spec: EngineSpec, progress: (detail: string) => void) => Promise<OpenEngine<Job, Event, Info>>
