import type { ImagePreprocessing } from "../architectures/image-preprocessing.ts"
import type { ImageTiling } from "../architectures/image-tiling.ts"
import { decodeImage, type Refused } from "./decode-image.ts"
import { decodeTiles, type TiledImage } from "./decode-tiles.ts"

export interface DecodeTilesInput {
  readonly bytes: Uint8Array
  readonly preprocessing: ImagePreprocessing
  /** Absent: an image is one tile. */
  readonly tiling?: ImageTiling
}

/** Runs in the thread pool. */
export default async ({
  bytes,
  preprocessing,
  tiling,
}: DecodeTilesInput): Promise<TiledImage | Refused> => {
  if (tiling) return decodeTiles(bytes, tiling)
  const image = await decodeImage(bytes, preprocessing)
  if ("refused" in image) return image
  const { resize } = preprocessing
  if (resize.mode !== "squares") return { tiles: [image], rows: 0, columns: 0 }
  // what is one token each
  return { tiles: [image], rows: image.height / resize.side, columns: image.width / resize.side }
}
