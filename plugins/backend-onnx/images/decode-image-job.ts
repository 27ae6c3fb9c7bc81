import type { ImagePreprocessing } from "../architectures/image-preprocessing.ts"
import { type DecodedImage, decodeImage } from "./decode-image.ts"

export interface DecodeImageInput {
  readonly bytes: Uint8Array
  readonly preprocessing: ImagePreprocessing
}

/** Runs in the thread pool. */
export default ({ bytes, preprocessing }: DecodeImageInput): Promise<DecodedImage> =>
  decodeImage(bytes, preprocessing)
