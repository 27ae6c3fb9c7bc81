import type { Picture } from "../architectures/image-preprocessing.ts"
import type { Feeds } from "../encoding/encoder-runner.ts"
import { floats, longs } from "../onnx/onnx-session.ts"
import { Tensor } from "../onnx/runtime.ts"
import type { QwenTower } from "./qwen-config.ts"
import { squareNumbers } from "./qwen-graph.ts"

/** The row and the column of each square, those of a token one after the other. */
const squaresOf = (rows: number, columns: number, merge: number): readonly (readonly number[])[] =>
  Array.from({ length: rows * columns }, (_, at) => {
    const inner = at % merge ** 2
    const token = Math.floor(at / merge ** 2)
    const across = columns / merge
    return [
      Math.floor(token / across) * merge + Math.floor(inner / merge),
      (token % across) * merge + (inner % merge),
    ]
  })

/** Writes a square as its colours one after the other, each once for every frame. */
const writeSquare = (
  { pixels, width }: Picture,
  { patch, frames }: QwenTower,
  row: number,
  column: number,
  into: Uint8Array,
): void => {
  const plane = patch * patch
  for (let y = 0; y < patch; y++)
    for (let x = 0; x < patch; x++) {
      const from = ((row * patch + y) * width + column * patch + x) * 3
      for (let channel = 0; channel < 3; channel++)
        for (let frame = 0; frame < frames; frame++)
          into[(channel * frames + frame) * plane + y * patch + x] = pixels[from + channel]!
    }
}

/** Returns what makes the feeds of a picture. */
export const qwenFeeds =
  (tower: QwenTower) =>
  ([picture]: readonly Picture[]): Feeds => {
    const { patch, merge, heads, width, window, rotaryBase } = tower
    const [rows, columns] = [picture!.height / patch, picture!.width / patch]
    const squares = squaresOf(rows, columns, merge)
    const count = squares.length
    if (rows % merge || columns % merge || picture!.pixels.length !== count * patch * patch * 3)
      throw new RangeError(`a picture of ${picture!.width} x ${picture!.height} pixels`)
    const numbers = squareNumbers(tower)
    const pixels = new Uint8Array(count * numbers)
    // half of a head's pairs turn by the row, half by the column
    const half = width / heads / 4
    const turns = Array.from({ length: half }, (_, i) => rotaryBase ** (-i / half))
    const angles = squares.flatMap(([row, column]) => [
      ...turns.map((turn) => row! * turn),
      ...turns.map((turn) => column! * turn),
    ])
    for (const [at, [row, column]] of squares.entries())
      writeSquare(picture!, tower, row!, column!, pixels.subarray(at * numbers))
    const side = (window ?? 1) * merge
    const across = Math.ceil(columns / side)
    return {
      pixels: new Tensor("uint8", pixels, [1, count, numbers]),
      places: longs([...squares.keys()], [1, count]),
      cos: floats(Float32Array.from(angles, Math.cos), [count, 2 * half]),
      sin: floats(Float32Array.from(angles, Math.sin), [count, 2 * half]),
      ...(window !== undefined && {
        windows: longs(
          squares.map(
            ([row, column]) => Math.floor(row! / side) * across + Math.floor(column! / side),
          ),
        ),
      }),
    }
  }
