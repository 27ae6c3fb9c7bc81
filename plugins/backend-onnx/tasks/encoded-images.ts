import type { SightInfo } from "../vision/open-sight-engine.ts"

/** An image as the decoder reads it. */
export interface EncodedImage {
  readonly rows: number
  readonly columns: number
  /** The rows of all tiles, one after the other. */
  readonly embedded: Float32Array
}

/** The tiles of an image, or that many small ones and the whole. */
export const tilesOf = ({ rows, columns }: Pick<EncodedImage, "rows" | "columns">): number =>
  rows * columns + 1

/** Without `tokens` of a tile, an image has one for each of its rows and columns. */
export const imageTokens = (
  image: Pick<EncodedImage, "rows" | "columns">,
  { tokens }: Pick<SightInfo, "tokens">,
): number => (tokens === undefined ? image.rows * image.columns : tilesOf(image) * tokens)

/** Encoded images, bounded in bytes: the least recently used one is dropped first. */
export class EncodedImages {
  private readonly maxBytes: number
  private readonly images = new Map<string, EncodedImage>()
  private used = 0

  constructor(maxBytes: number) {
    this.maxBytes = maxBytes
  }

  get bytes(): number {
    return this.used
  }

  get(key: string): EncodedImage | undefined {
    const image = this.images.get(key)
    if (!image) return undefined
    this.images.delete(key)
    this.images.set(key, image)
    return image
  }

  keep(key: string, image: EncodedImage): void {
    this.drop(key)
    if (image.embedded.byteLength > this.maxBytes) return
    this.images.set(key, image)
    this.used += image.embedded.byteLength
    for (const oldest of this.images.keys()) {
      if (this.used <= this.maxBytes) return
      this.drop(oldest)
    }
  }

  private drop(key: string): void {
    const image = this.images.get(key)
    if (!image) return
    this.images.delete(key)
    this.used -= image.embedded.byteLength
  }
}
