import sharp from "sharp"
import type { Picture, Size } from "../architectures/image-preprocessing.ts"
import { type ImageTiling, tilePlan } from "../architectures/image-tiling.ts"
import { type Refused, upright, whenImage } from "./decode-image.ts"
import { resizedByLanczos } from "./lanczos.ts"

/** The tiles of an image, row by row, and the whole of it behind them where there are several. */
export interface TiledImage {
  readonly tiles: readonly Picture[]
  readonly rows: number
  readonly columns: number
}

const bytesOfPixel = 3

const cut = (pixels: Uint8Array, { width }: Size, edge: number, left: number, top: number) => {
  const tile = new Uint8Array(edge * edge * bytesOfPixel)
  for (let row = 0; row < edge; row++) {
    const from = ((top + row) * width + left) * bytesOfPixel
    tile.set(pixels.subarray(from, from + edge * bytesOfPixel), row * edge * bytesOfPixel)
  }
  return { pixels: tile, width: edge, height: edge }
}

const tiled = async (bytes: Uint8Array, tiling: ImageTiling, size: Size): Promise<TiledImage> => {
  const { edge, kernel } = tiling
  const { first, whole, rows, columns } = tilePlan(tiling, size)
  const square = { width: edge, height: edge }
  const resized = async (pixels: Uint8Array, from: Size, to: Size): Promise<Uint8Array> => {
    if (from.width === to.width && from.height === to.height) return pixels
    const isEnlarged = to.width > from.width || to.height > from.height
    if (kernel === "lanczos3" && isEnlarged) return resizedByLanczos(pixels, from, to)
    return sharp(pixels, { raw: { ...from, channels: bytesOfPixel } })
      .resize({ ...to, fit: "fill", kernel })
      .raw({ depth: "uchar" })
      .toBuffer()
  }
  const isSmall = kernel === "lanczos3" && (first.width > size.width || first.height > size.height)
  const decoded = isSmall
    ? upright(bytes)
    : upright(bytes).resize({ ...first, fit: "fill", kernel, fastShrinkOnLoad: false })
  const raw = await decoded.raw({ depth: "uchar" }).toBuffer()
  const once = isSmall ? resizedByLanczos(raw, size, first) : raw
  const pixels = await resized(once, first, whole)
  const small = { pixels: await resized(pixels, whole, square), ...square }
  const tiles: Picture[] = []
  for (let row = 0; row < rows; row++)
    for (let column = 0; column < columns; column++)
      tiles.push(cut(pixels, whole, edge, column * edge, row * edge))
  return { tiles: [...tiles, small], rows, columns }
}

/** Decodes an image as `decodeImage` does, and divides it into tiles. */
export const decodeTiles = (file: Uint8Array, tiling: ImageTiling): Promise<TiledImage | Refused> =>
  whenImage(file, (bytes, size) => tiled(bytes, tiling, size))
