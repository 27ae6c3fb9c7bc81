import type { Precision } from "../onnx/linear.ts"

export type Priority = "realtime" | "batch"

/** What to open, and how. */
export interface EngineSpec {
  readonly kind: "llama" | "bert"
  /** A GGUF file, or a folder with safetensors. */
  readonly path: string
  /** Where built graphs are kept. */
  readonly graphs: string
  readonly precision: Precision
  /** Of ONNX Runtime, for one operator. */
  readonly threads: number
  /** Requests that run side by side. */
  readonly slots: number
}

export interface ThreadData {
  readonly spec: EngineSpec
  /** See native-guard.ts. */
  readonly guard: Int32Array
}

export type ToThread<Job> =
  | { readonly type: "submit"; readonly id: number; readonly priority: Priority; readonly job: Job }
  | { readonly type: "cancel"; readonly id: number }
  | { readonly type: "close" }

/** progress* -> (ready | unusable); then for each job event* -> (done | failed). */
export type FromThread<Event, Info> =
  | { readonly type: "progress"; readonly detail: string }
  | { readonly type: "ready"; readonly info: Info }
  | { readonly type: "unusable"; readonly message: string }
  | { readonly type: "event"; readonly id: number; readonly event: Event }
  | { readonly type: "done"; readonly id: number }
  | { readonly type: "failed"; readonly id: number; readonly message: string }

/** Any job may report how long a stage took. */
export interface StageTime {
  readonly type: "time"
  readonly stage: "queue" | "prefill" | "decode"
  readonly durationMs: number
}
