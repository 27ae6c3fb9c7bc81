import type { Picture } from "../architectures/image-preprocessing.ts"
import type { Feeds } from "../encoding/encoder-runner.ts"
import { floats, longs } from "../onnx/onnx-session.ts"
import { Tensor } from "../onnx/runtime.ts"
import type { VisionConfig } from "./vision-config.ts"

/**
 * How much of each of `inputs` values is in each of `outputs`, `[outputs, inputs]`: bilinear
 * interpolation with antialiasing, as PyTorch's `interpolate` does it. Rows sum to 1.
 */
export const interpolation = (inputs: number, outputs: number): Float32Array => {
  const scale = inputs / outputs
  const reach = Math.max(1, scale)
  const weights = new Float32Array(outputs * inputs)
  for (let row = 0; row < outputs; row++) {
    const centre = scale * (row + 0.5)
    const [from, to] = [
      Math.max(0, Math.trunc(centre - reach + 0.5)),
      Math.min(inputs, Math.trunc(centre + reach + 0.5)),
    ]
    const triangle = (at: number) => Math.max(0, 1 - Math.abs(at + 0.5 - centre) / reach)
    let sum = 0
    for (let at = from; at < to; at++) sum += triangle(at)
    for (let at = from; at < to; at++) weights[row * inputs + at] = triangle(at) / sum
  }
  return weights
}

interface Patches {
  /** Pixels of a square's side. */
  readonly patch: number
  /** Squares of a picture, at most. */
  readonly most: number
  /** Places on a side of the table of positions. */
  readonly grid: number
}

/** Writes the squares of a picture, row by row, each as `[patch, patch, 3]`. */
const writeSquares = (picture: Picture, patch: number, into: Uint8Array): void => {
  const { pixels, width, height } = picture
  const columns = width / patch
  const rowBytes = patch * 3
  for (let y = 0; y < height; y++)
    for (let column = 0; column < columns; column++) {
      const square = Math.floor(y / patch) * columns + column
      const from = (y * width + column * patch) * 3
      into.set(pixels.subarray(from, from + rowBytes), (square * patch + (y % patch)) * rowBytes)
    }
}

/** Writes what each square has of each place of the table: `[squares, grid * grid]`. */
const writePlaces = (rows: number, columns: number, grid: number, into: Float32Array): void => {
  const [down, across] = [interpolation(grid, rows), interpolation(grid, columns)]
  for (let row = 0; row < rows; row++)
    for (let column = 0; column < columns; column++)
      for (let y = 0; y < grid; y++)
        for (let x = 0; x < grid; x++)
          into[((row * columns + column) * grid + y) * grid + x] =
            down[row * grid + y]! * across[column * grid + x]!
}

/**
 * Returns what makes the feeds of a graph that reads pictures as squares: `pixels [B, most, patch *
 * patch * 3]`, `places [B, most, grid * grid]`, `counts [B]`.
 */
const patchFeeds =
  ({ patch, most, grid }: Patches) =>
  (pictures: readonly Picture[]): Feeds => {
    const [size, places] = [patch * patch * 3, grid * grid]
    const pixels = new Uint8Array(pictures.length * most * size)
    const spread = new Float32Array(pictures.length * most * places)
    const counts = pictures.map(({ width, height, pixels: bytes }) => {
      const count = (width / patch) * (height / patch)
      if (!Number.isInteger(count) || count > most || bytes.length !== width * height * 3)
        throw new RangeError(`a picture of ${width} x ${height} pixels`)
      return count
    })
    for (const [row, picture] of pictures.entries()) {
      const [rows, columns] = [picture.height / patch, picture.width / patch]
      writeSquares(picture, patch, pixels.subarray(row * most * size))
      writePlaces(rows, columns, grid, spread.subarray(row * most * places))
    }
    return {
      pixels: new Tensor("uint8", pixels, [pictures.length, most, size]),
      places: floats(spread, [pictures.length, most, places]),
      counts: longs(counts),
    }
  }

/** Returns what makes the feeds of a graph that reads pictures. */
export const pictureFeeds = ({
  tower,
  preprocessing,
}: Pick<VisionConfig, "tower" | "preprocessing">): ((pictures: readonly Picture[]) => Feeds) => {
  const { width, height, resize } = preprocessing
  if (tower.family === "siglip2" && resize.mode === "patches")
    return patchFeeds({ ...resize, grid: tower.grid })
  return (pictures) => {
    const pixels = new Uint8Array(pictures.length * height * width * 3)
    for (const [row, picture] of pictures.entries()) {
      if (picture.pixels.length !== height * width * 3)
        throw new RangeError(`a picture of ${picture.width} x ${picture.height} pixels`)
      pixels.set(picture.pixels, row * picture.pixels.length)
    }
    return { pixels: new Tensor("uint8", pixels, [pictures.length, height, width, 3]) }
  }
}
