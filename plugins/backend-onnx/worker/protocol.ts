import type { Precision } from "../onnx/linear.ts"

export type Priority = "realtime" | "batch"

/** How an encoder's vectors are made, where its files don't say or shall not. */
export interface EncoderOptions {
  readonly pooling?: "cls" | "mean" | "last" | undefined
  /** Whether prefixes of the model's vectors are vectors themselves. */
  readonly matryoshka?: boolean | undefined
}

/** How an image model is opened. */
export interface ImageEngineOptions {
  /** Only one part is in memory at a time. */
  readonly offload: boolean
  /** Pictures of more pixels on a side are decoded in tiles of so many. */
  readonly tileSize: number
}

/** What a device can, for graphs that are built for it. */
export interface DeviceAbilities {
  readonly hasFp16: boolean
  readonly maxBufferBytes: number
}

/** Which model an engine opens, and how. */
export interface EngineSpec {
  readonly kind: "decoder" | "encoder" | "vision" | "sight" | "image" | "hearing" | "listening"
  /** A GGUF file, a folder with safetensors, or an ONNX export. */
  readonly path: string
  /** Folder of the cache of built graphs. */
  readonly graphs: string
  readonly precision: Precision
  /** A decoder keeps weights in this precision, too, and reads prompts by them; absent: it does not. */
  readonly promptPrecision?: Precision
  /** Threads that ONNX Runtime uses within one operator. */
  readonly threads: number
  /** The maximum number of requests that run at the same time. */
  readonly slots: number
  /** Memory for keys and values of running requests, for decoders. */
  readonly kvBytes: number
  /** Memory of the prefix cache, for decoders. */
  readonly prefixCacheBytes: number
  /** LoRAs of a chat model, and the most memory that they may take. */
  readonly adapters?: readonly { readonly id: string; readonly path: string }[]
  readonly adapterBytes?: number
  readonly encoder?: EncoderOptions
  readonly image?: ImageEngineOptions
  /** Where it runs; absent: on the CPU. */
  readonly device?: DeviceAbilities
  /** Draft tokens by prompt lookup when a single sampled request is decoded. */
  readonly speculation: boolean
}

/** A request, posted to the thread. */
export interface Submit<Job> {
  readonly type: "submit"
  readonly id: number
  /** Requests are scheduled fairly by account. */
  readonly account: string
  readonly priority: Priority
  /** How long the request may wait for a slot. */
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

/** The state of a thread's memory, counted from its start. */
export interface ThreadStats {
  /** Parts of the memory for keys and values, and of the prefix cache, that are in use: 0 to 1. */
  readonly kvCacheUsage: number
  readonly prefixCacheUsage: number
  /** Tokens that were looked up in the prefix cache, and those that it had. */
  readonly prefixCacheQueries: number
  readonly prefixCacheHits: number
  readonly adapterBytes?: number
}

/**
 * A thread posts lists of these. Their order: progress*, then ready or unusable; then for each job
 * event* and done or failed, or busy alone. Stats come before what ended a job, if they have
 * changed.
 */
export type FromThread<Event, Info> =
  | { readonly type: "progress"; readonly detail: string }
  | { readonly type: "ready"; readonly info: Info }
  | { readonly type: "unusable"; readonly message: string }
  | { readonly type: "event"; readonly id: number; readonly event: Event }
  | { readonly type: "stats"; readonly stats: ThreadStats }
  | { readonly type: "done"; readonly id: number }
  | { readonly type: "busy"; readonly id: number }
  | {
      readonly type: "failed"
      readonly id: number
      readonly message: string
      readonly why?: "grammar" | "grammarLate" | "deadEnd"
    }

/** Duration of a stage, which any job may report. */
export interface StageTime {
  readonly type: "time"
  readonly stage: "queue" | "prefill" | "decode" | "encode" | "denoise"
  readonly durationMs: number
}
