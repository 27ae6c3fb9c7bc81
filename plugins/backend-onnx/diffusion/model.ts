import type { Adapter } from "../../../core/ports/model.ts"
import type { GraphPlace } from "../onnx/graph-cache.ts"
import type { Precision } from "../onnx/linear.ts"
import type { Metadata } from "../weights/gguf-metadata.ts"

/** Numbers in row-major order. */
export interface Tensor {
  readonly data: Float32Array
  readonly dims: readonly number[]
}

/** Inputs of a denoiser that stay the same from step to step, by name. */
export type Condition = Readonly<Record<string, Tensor>>

/** Red, green and blue, 8 bits each, row by row. */
export interface Pixels {
  readonly data: Uint8Array
  readonly width: number
  readonly height: number
}

/** What the sources of an edit become. */
export interface EncodedSources {
  /** Latents of the first one, from which an edit of some strength starts; absent: from noise. */
  readonly start?: Tensor
  /** What the denoiser sees of all of them in every step. */
  readonly condition: Condition
}

/** What an engine knows of a model before it runs. */
export interface ImageModelInfo {
  /** `_class_name` of model_index.json, such as `FluxPipeline`. */
  readonly family: string
  /** The content of scheduler_config.json. */
  readonly scheduler: Metadata
  /** Width and height are multiples of so many pixels. */
  readonly multiple: number
  /**
   * `twice`: a step runs with the prompt and without (classifier-free guidance); `input`: the scale
   * is an input of the denoiser; `none`: it has no influence.
   */
  readonly guidance: "twice" | "input" | "none"
  /** Whether sources are seen in every step, started from, or can't be used. */
  readonly sources: "seen" | "start" | "none"
  /** The most sources that it takes. */
  readonly maxSources: number
  /**
   * The most pixels of a source that is seen in its own size; absent: it gets about as many as the
   * result has.
   */
  readonly sourcePixels?: number
  /** The most pixels of a side, where the model knows places of so many; absent: no bound. */
  readonly maxSide?: number
  /**
   * The shift of a flow-match schedule for so many tokens and steps, where the family has a formula
   * of its own in place of that of the scheduler's configuration.
   */
  shiftOf?(tokens: number, steps: number): number
  /** Whether the steps of the schedule are even from 1 to 1 / steps before they are shifted. */
  readonly evenSigmas?: boolean
  /** Whether an edit of 0.6 of 3 steps runs 2 of them, not 1. */
  readonly roundsStepsUp?: boolean
  /** Ids of adapters of the entry that are parts of the model. */
  readonly parts?: readonly string[]
  /** Ids of the LoRAs that are open, and the memory that they take. */
  readonly adapters?: readonly string[]
  readonly adapterBytes?: number
}

/** A text-to-image model that is open in this thread. A failure names the part that failed. */
export interface ImageModel {
  readonly info: ImageModelInfo
  /** Dimensions of the latents of a picture of this size in pixels. */
  latentShape(width: number, height: number): readonly number[]
  /** The number of tokens or patches of latents, which the shift of a schedule depends on. */
  tokensIn(latents: readonly number[]): number
  encodePrompt(prompt: string, adapter?: Adapter): Promise<Condition>
  /**
   * The pictures have any size; `width` and `height` are those of the result. `pause` is awaited
   * between tiles, as by `decode`.
   */
  encodeSources(
    pictures: readonly Pixels[],
    width: number,
    height: number,
    pause?: () => Promise<void>,
  ): Promise<EncodedSources>
  /**
   * Runs the denoiser once: what its scheduler's configuration says that it predicts. `timestep` is
   * that of the schedule. `guidance` comes where it is an input, or where timestep_cond is one.
   */
  denoise(
    latents: Tensor,
    timestep: number,
    condition: Condition,
    guidance?: number,
    adapter?: Adapter,
  ): Promise<Tensor>
  /**
   * The picture may have another size than asked. `pause` is awaited between tiles; it rejects
   * when the job was cancelled.
   */
  decode(latents: Tensor, pause?: () => Promise<void>): Promise<Pixels>
  /**
   * A small picture of latents, of about `side` pixels on its longer side, cheaper than `decode`;
   * absent: `decode` makes the previews.
   */
  preview?(latents: Tensor, side: number, pause?: () => Promise<void>): Promise<Pixels>
  close(): Promise<void>
}

/** How a model's parts are opened. */
export interface ImageModelHost extends GraphPlace {
  readonly threads: number
  readonly precision: Precision
  /** Only one part is in memory at a time: using one closes the others. */
  readonly offload: boolean
  /** Pictures of more pixels on a side are decoded in tiles of so many. */
  readonly tileSize: number
  /** LoRAs, each a file or a folder, and the most memory that they may take. */
  readonly adapters: readonly { readonly id: string; readonly path: string }[]
  readonly adapterBytes: number
  progress(detail: string): void
}

/** Opens the folder of a model. Throws `ModelFileError`. */
export type OpenImageModel = (path: string, host: ImageModelHost) => Promise<ImageModel>
