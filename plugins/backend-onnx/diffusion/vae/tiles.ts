import type { Tensor } from "../model.ts"

/** A part of an axis, and over how many positions it fades into its neighbours. */
export interface Span {
  readonly start: number
  readonly size: number
  /** Positions that it shares with the part before it, and with the one after it. */
  readonly before: number
  readonly after: number
}

/** The share of a tile that it has in common with its neighbour, at least. */
const overlap = 1 / 8

/**
 * Divides an axis of `size` positions into parts of one size, `most` at most, which overlap. Equal
 * parts matter: norms are over a tile, and a narrow one would have another brightness.
 */
export const spansOf = (size: number, most: number): readonly Span[] => {
  if (size <= most) return [{ start: 0, size, before: 0, after: 0 }]
  const shared = Math.max(1, Math.floor(most * overlap))
  const count = Math.ceil((size - shared) / (most - shared))
  const edge = Math.ceil((size + (count - 1) * shared) / count)
  const starts = Array.from({ length: count }, (_, index) =>
    Math.floor((index * (size - edge)) / (count - 1)),
  )
  const sharedBefore = (index: number) =>
    index > 0 && index < count ? starts[index - 1]! + edge - starts[index]! : 0
  return starts.map((start, index) => ({
    start,
    size: edge,
    before: sharedBefore(index),
    after: sharedBefore(index + 1),
  }))
}

/** The weights of a part, `unit` for each position; those of neighbours sum to 1. */
export const fades = ({ size, before, after }: Span, unit: number): Float32Array => {
  const length = size * unit
  const [rise, fall] = [before * unit || 0.5, after * unit || 0.5]
  return Float32Array.from({ length }, (_, index) =>
    Math.min(1, (index + 0.5) / rise, (length - index - 0.5) / fall),
  )
}

type Planes = readonly [batch: number, channels: number, height: number, width: number]

/** The rectangle of all planes from a position on. */
const cut = ({ data, dims }: Tensor, down: Span, across: Span, unit: number): Tensor => {
  const [, channels, height, width] = dims as Planes
  const [top, left] = [down.start * unit, across.start * unit]
  const [rows, columns] = [down.size * unit, across.size * unit]
  const out = new Float32Array(channels * rows * columns)
  for (let plane = 0; plane < channels; plane++)
    for (let row = 0; row < rows; row++) {
      const from = (plane * height + top + row) * width + left
      out.set(data.subarray(from, from + columns), (plane * rows + row) * columns)
    }
  return { data: out, dims: [1, channels, rows, columns] }
}

/** Adds a tile, faded at its edges, to the planes of the whole. */
const add = (whole: Tensor, tile: Tensor, down: Span, across: Span, unit: number): void => {
  const [, channels, height, width] = whole.dims as Planes
  const [fadeDown, fadeAcross] = [fades(down, unit), fades(across, unit)]
  const [rows, columns] = [fadeDown.length, fadeAcross.length]
  for (let plane = 0; plane < channels; plane++)
    for (let row = 0; row < rows; row++) {
      const from = (plane * rows + row) * columns
      const to = (plane * height + down.start * unit + row) * width + across.start * unit
      const weight = fadeDown[row]!
      for (let column = 0; column < columns; column++)
        whole.data[to + column]! += weight * fadeAcross[column]! * tile.data[from + column]!
    }
}

export interface Tiling {
  /** Edge of the largest tile, in positions of latents. */
  readonly most: number
  /** Elements of an edge of the input, and of the output, for each position of latents. */
  readonly inputUnit: number
  readonly outputUnit: number
}

/**
 * Runs planes `[1,C,H,W]` through a network in tiles whose seams are blended, so that its memory is
 * bounded; in whole where they are small.
 */
export const inTiles = async (
  input: Tensor,
  { most, inputUnit, outputUnit }: Tiling,
  run: (tile: Tensor) => Promise<Tensor>,
): Promise<Tensor> => {
  const [, , height, width] = input.dims as Planes
  const [rows, columns] = [height / inputUnit, width / inputUnit]
  if (rows <= most && columns <= most) return run(input)
  let whole: Tensor | undefined
  for (const down of spansOf(rows, most))
    for (const across of spansOf(columns, most)) {
      const tile = await run(cut(input, down, across, inputUnit))
      const dims = [1, tile.dims[1]!, rows * outputUnit, columns * outputUnit]
      whole ??= { data: new Float32Array(dims.reduce((a, b) => a * b)), dims }
      add(whole, tile, down, across, outputUnit)
    }
  return whole!
}
