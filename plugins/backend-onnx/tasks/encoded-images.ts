import type { SightInfo } from "../vision/open-sight-engine.ts"
import { RecentlyUsed } from "./recently-used.ts"

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

/** A place for encoded images. */
export const encodedImages = (maxBytes: number) =>
  new RecentlyUsed<EncodedImage>(maxBytes, ({ embedded }) => embedded.byteLength)

export type EncodedImages = ReturnType<typeof encodedImages>
