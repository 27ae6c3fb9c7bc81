import type { Metadata } from "../../weights/gguf-metadata.ts"
import { numbersIn, present } from "../../weights/gguf-metadata.ts"
import { Damaged } from "../../weights/model-file-error.ts"

/** The dimensions of a head that each axis of positions rotates; throws `Damaged`. */
export const axesIn = (
  json: Metadata,
  key: string,
  usual: readonly number[],
  headSize: number,
): readonly number[] => {
  const axes = present(json, key) ? numbersIn(json, key) : usual
  const isEven = axes.every((size) => Number.isInteger(size) && size > 0 && size % 2 === 0)
  if (!isEven || axes.reduce((sum, size) => sum + size, 0) !== headSize)
    throw new Damaged(`'${key}' is ${axes.join(", ")}, and a head has ${headSize} dimensions`)
  return axes
}

/** Position of a token: a number for each axis. */
export type Position = readonly number[]

/** Cosines and sines `[positions, headSize / 2]`. */
export interface RotaryTables {
  readonly cos: Float32Array
  readonly sin: Float32Array
}

/**
 * Rotary tables over several axes (Su et al., arXiv 2104.09864): the pairs of a head are divided
 * among the axes of the positions.
 */
export const axialTables = (
  positions: readonly Position[],
  axes: readonly number[],
  theta: number,
): RotaryTables => {
  const half = axes.reduce((sum, size) => sum + size, 0) / 2
  const cos = new Float32Array(positions.length * half)
  const sin = new Float32Array(positions.length * half)
  const frequencies = axes.flatMap((size, axis) =>
    Array.from({ length: size / 2 }, (_, i) => ({ axis, frequency: theta ** ((-2 * i) / size) })),
  )
  for (const [row, position] of positions.entries())
    for (const [column, { axis, frequency }] of frequencies.entries()) {
      const angle = position[axis]! * frequency
      cos[row * half + column] = Math.cos(angle)
      sin[row * half + column] = Math.sin(angle)
    }
  return { cos, sin }
}

/** Positions of a grid of patches, row by row: `place` makes one of row and column. */
export const gridPositions = (
  rows: number,
  columns: number,
  place: (row: number, column: number) => Position,
): readonly Position[] =>
  Array.from({ length: rows * columns }, (_, i) => place(Math.floor(i / columns), i % columns))
