import type { Precision } from "../onnx/linear.ts"

export type Priority = "realtime" | "batch"

/** What to open, and how. */
export interface EngineSpec {
  readonly kind: "decoder" | "encoder"
  /** A GGUF file, or a folder with safetensors. */
  readonly path: string
  /** Where built graphs are kept. */
  readonly graphs: string
  readonly precision: Precision
  /** Of ONNX Runtime, for one operator. */
  readonly threads: number
  /** Requests that run side by side. */
  readonly slots: number
  /** Memory for keys and values of running requests, of a chat model. */
  readonly kvBytes: number
  /** Memory for keys and values of beginnings of texts, of a chat model. */
  readonly prefixCacheBytes: number
  /** Guess what follows from what came before, when one request is written alone. */
  readonly speculation: boolean
}

/** A request on its way to the thread. */
export interface Submit<Job> {
  readonly type: "submit"
  readonly id: number
  /** Accounts take turns. */
  readonly account: string
  readonly priority: Priority
  /** How long it may wait for a slot. */
  readonly waitMs: number
  readonly job: Job
}

export interface ThreadData {
  readonly spec: EngineSpec
  /** See native-guard.ts. */
  readonly guard: Int32Array
}

export type ToThread<Job> =
  | Submit<Job>
  | { readonly type: "cancel"; readonly id: number }
  | { readonly type: "close" }

/** progress* -> (ready | unusable); then for each job event* -> (done | failed), or busy. */
export type FromThread<Event, Info> =
  | { readonly type: "progress"; readonly detail: string }
  | { readonly type: "ready"; readonly info: Info }
  | { readonly type: "unusable"; readonly message: string }
  | { readonly type: "event"; readonly id: number; readonly event: Event }
  | { readonly type: "done"; readonly id: number }
  | { readonly type: "busy"; readonly id: number }
  | {
      readonly type: "failed"
      readonly id: number
      readonly message: string
      readonly isGrammar: boolean
    }

/** Any job may report how long a stage took. */
export interface StageTime {
  readonly type: "time"
  readonly stage: "queue" | "prefill" | "decode"
  readonly durationMs: number
}
