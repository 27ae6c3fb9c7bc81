import type { Ask } from "../../plugins/backend-onnx/generation/testing/in-process.ts"
import type { KvShape } from "../../plugins/backend-onnx/sessions/kv-store.ts"

/** Stores are known by their number, in the order in which they were made; so are blocks. */
export type Move =
  | {
      readonly type: "store"
      readonly rows: number
      readonly capacity: number
      /** The first of the numbers that it holds. */
      readonly from: number
    }
  | {
      readonly type: "copyRow"
      readonly into: number
      readonly intoRow: number
      readonly from: number
      readonly fromRow: number
      readonly count: number
    }
  | {
      readonly type: "read"
      readonly from: number
      readonly row: number
      readonly first: number
      readonly count: number
      /** The block that it becomes, in place of a new one. */
      readonly reused?: number
    }
  | {
      readonly type: "restore"
      readonly into: number
      readonly row: number
      readonly first: number
      readonly count: number
      readonly block: number
    }
  | { readonly type: "clear"; readonly store: number; readonly row: number }

/** A chat model and what is asked of it: rounds of requests at once. */
export interface Chat {
  readonly path: string
  readonly prefixCacheBytes: number
  readonly maxBufferBytes: number
  readonly adapters: readonly { readonly id: string; readonly path: string }[]
  readonly rounds: readonly (readonly (Omit<Ask, "promptIds"> & {
    readonly promptIds: readonly number[]
  })[])[]
}

/** What the device's process has to do; its graphs are in the folder. */
export interface DeviceTask {
  readonly folder: string
  readonly shape: KvShape
  readonly scripts: readonly (readonly Move[])[]
  readonly chats: readonly Chat[]
}

export interface DeviceResult {
  /** What the stores of each script hold at its end. */
  moves: number[][][]
  /** Buffers that are left of the scripts. */
  live: number
  readonly chats: {
    readonly rounds: {
      readonly texts: readonly string[]
      readonly read: readonly number[]
      readonly ends: readonly (string | null)[]
      /** The most numbers that a decode step sent or got. */
      readonly most: number
    }[]
    /** Buffers that are left when the requests have ended, and when the model is closed. */
    readonly byRequests: number
    readonly byClosed: number
    readonly window: number
  }[]
}
