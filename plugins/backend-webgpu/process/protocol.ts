/** What the device's process is sent. `engine` counts from 0. */
export type ToProcess =
  | {
      readonly type: "start"
      readonly engine: number
      /** URL of the module that serves the engine. */
      readonly entry: string
      readonly data: unknown
    }
  | { readonly type: "message"; readonly engine: number; readonly message: unknown }
  | { readonly type: "ping" }

/** What it sends: for each engine message*, one `started` among them, and `ended` as the last. */
export type FromProcess =
  | { readonly type: "message"; readonly engine: number; readonly message: unknown }
  /** Its model is open, or can't be opened. */
  | { readonly type: "started"; readonly engine: number }
  | { readonly type: "ended"; readonly engine: number; readonly reason?: string }
  | { readonly type: "graph"; readonly path: string; readonly nodes: PlacedNodes }
  /** The process ends itself, as its device is lost. */
  | { readonly type: "lost"; readonly reason: string }
  | { readonly type: "pong" }

/** How often each operator is in a graph: those that run on the device, and on the CPU. */
export interface PlacedNodes {
  readonly device: Readonly<Record<string, number>>
  readonly cpu: Readonly<Record<string, number>>
}

/** What the `webgpu` package says of the adapter that it chose. */
export interface FoundAdapter {
  readonly vendor: string
  readonly architecture: string
  /** The model, as the driver has it; a number on Windows. */
  readonly device: string
  readonly description: string
  readonly isSoftware: boolean
  readonly features: readonly string[]
  readonly maxBufferBytes: number
}

/** What a probe sends. */
export type ProbeResult =
  | { readonly type: "adapter"; readonly adapter: FoundAdapter }
  | { readonly type: "none" }
  | { readonly type: "noPackage"; readonly reason: string }
