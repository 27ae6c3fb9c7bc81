import type { ImagePreprocessing } from "../architectures/image-preprocessing.ts"

/** Pictures as bytes `[height, width, 3]` of red, green and blue, of the size of the tower. */
export interface VisionJobRequest {
  readonly images: readonly Uint8Array[]
}

/** An open vision tower. Its events are those of texts (`EmbedJobEvent`). */
export interface VisionInfo {
  readonly preprocessing: ImagePreprocessing
  readonly name: string
  /** Digest of the weights. */
  readonly digest: string
  /** Length of the tower's own vectors, before their map into the embedding space. */
  readonly width: number
  /** As an encoder's: that of the text model that it belongs to must be the same. */
  readonly map: string
}
