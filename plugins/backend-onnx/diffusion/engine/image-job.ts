import type { ImageRequest } from "../../../../core/ports/model.ts"
import type { StageTime } from "../../worker/protocol.ts"
import type { Pixels } from "../model.ts"

/** A picture to make, posted to the engine. */
export interface ImageJobRequest
  extends Pick<
    ImageRequest,
    | "prompt"
    | "width"
    | "height"
    | "steps"
    | "seed"
    | "guidanceScale"
    | "strength"
    | "adapter"
    | "previews"
  > {
  /** The pictures of an edit. */
  readonly sources: readonly Pixels[]
  /** Pixels of the longer side of a preview; absent: previews are whole pictures. */
  readonly previewSide?: number
}

/** `picture` comes last, in the size that the model made. */
export type ImageJobEvent =
  | StageTime
  | {
      readonly type: "step"
      readonly step: number
      readonly steps: number
      readonly preview?: Pixels
    }
  | { readonly type: "picture"; readonly picture: Pixels }

/** An open image model, as the main thread sees it. */
export interface ImageInfo {
  /** Whether sources are seen in every step, started from, or can't be used. */
  readonly sources: "seen" | "start" | "none"
  readonly maxSources: number
  /**
   * The most pixels of a source that is seen in its own size; absent: it gets about as many as the
   * result has.
   */
  readonly sourcePixels?: number
  /** The most pixels of a side, where the model knows places of so many; absent: no bound. */
  readonly maxSide?: number
  /** The most steps of its schedule; absent: no bound of its own. */
  readonly maxSteps?: number
  /** Ids of adapters of the entry that are parts of the model. */
  readonly parts: readonly string[]
  /** Ids of its LoRAs. */
  readonly adapters: readonly string[]
  /** The memory that they take. */
  readonly adapterBytes: number
  /** Digest of all files that pictures are computed from, and how; for receipts. */
  readonly digest: string
  /** Digests of the LoRAs, by their ids. */
  readonly adapterDigests: Readonly<Record<string, string>>
}
