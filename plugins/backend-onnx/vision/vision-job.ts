import type { ImagePreprocessing, Picture } from "../architectures/image-preprocessing.ts"

/** Pictures of the sizes that the tower reads. */
export interface VisionJobRequest {
  readonly images: readonly Picture[]
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
