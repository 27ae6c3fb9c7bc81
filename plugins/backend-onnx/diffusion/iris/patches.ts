import type { Tensor } from "../model.ts"

const sizesOf = (dims: readonly number[]) => dims as readonly [number, number, number, number]

/** Calls `each` with the place of every number in planes `[3,H,W]` and in patches. */
const placed = (
  [rows, columns, size]: readonly [rows: number, columns: number, size: number],
  each: (inPlanes: number, inPatches: number) => void,
): void => {
  const [height, width] = [rows * size, columns * size]
  let to = 0
  for (let row = 0; row < rows; row++)
    for (let column = 0; column < columns; column++)
      for (let y = row * size; y < (row + 1) * size; y++)
        for (let x = column * size; x < (column + 1) * size; x++)
          for (let channel = 0; channel < 3; channel++)
            each((channel * height + y) * width + x, to++)
}

/** A picture `[1,3,H,W]` as patches `[1,rows,columns,size*size*3]`: by row, column and channel. */
export const patchesOf = ({ data, dims }: Pick<Tensor, "data" | "dims">, size: number): Tensor => {
  const [, , height, width] = sizesOf(dims)
  const [rows, columns] = [height / size, width / size]
  const patches = new Float32Array(data.length)
  placed([rows, columns, size], (from, to) => {
    patches[to] = data[from]!
  })
  return { data: patches, dims: [1, rows, columns, size * size * 3] }
}

/** The inverse of `patchesOf`. */
export const pictureOf = ({ data, dims }: Tensor): Tensor => {
  const [, rows, columns, numbers] = sizesOf(dims)
  const size = Math.sqrt(numbers / 3)
  const planes = new Float32Array(data.length)
  placed([rows, columns, size], (to, from) => {
    planes[to] = data[from]!
  })
  return { data: planes, dims: [1, 3, rows * size, columns * size] }
}

/** Patches of several pictures as one sequence of tokens, `[1,N,size*size*3]`. */
export const joinedPatches = (parts: readonly Tensor[]): Tensor => {
  const width = parts[0]!.dims.at(-1)!
  const data = new Float32Array(parts.reduce((sum, part) => sum + part.data.length, 0))
  let at = 0
  for (const part of parts) {
    data.set(part.data, at)
    at += part.data.length
  }
  return { data, dims: [1, data.length / width, width] }
}
