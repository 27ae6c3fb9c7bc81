import type { Effect } from "effect"

/** One end of the channel to an engine, wherever it runs: as of a `Worker`. */
export interface EngineChannel {
  postMessage(message: unknown): void
  /** `message`; `error` with a cause, then `exit` with a code, which comes last. */
  // biome-ignore lint/suspicious/noExplicitAny: what a message is, its receiver knows (as of Worker)
  on(event: string, listener: (value: any) => void): unknown
}

/** A device that was found. */
export interface Device {
  /** As its driver says it. */
  readonly name: string
  /** A processor that plays a device: for tests only. */
  readonly isSoftware: boolean
  readonly hasFp16: boolean
  readonly maxBufferBytes: number
  /** Why it is given up, once it is: then engines run on the CPU. */
  failure(): string | undefined
  /**
   * Starts an engine in the device's process, which several engines share: imports `entry` there
   * and calls its `startOnDevice(port, data, sessions)`, where `sessions` opens graphs
   * (`openSession`) and the device itself for programs in WGSL (`gpu`). Throws when it is given up.
   */
  start(entry: URL, data: unknown): EngineChannel
}

/** Runs the engines of a backend elsewhere than on the CPU. */
export interface ExecutionProvider {
  /** What entries name as their `backend`: `webgpu`. */
  readonly name: string
  /** Looks for the device once; fails with one line that says what to install. */
  readonly device: Effect.Effect<Device, string>
}
