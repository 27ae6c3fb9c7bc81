import type { DecoderShape } from "../architectures/decoder-config.ts"
import type { ForwardPass } from "./decoder.ts"

/** Rows and columns of the tokens of an image. */
export interface TokenGrid {
  readonly rows: number
  readonly columns: number
}

/** The time, the row and the column of a token; all are the same where it is text. */
type Place = readonly [time: number, row: number, column: number]

/**
 * The places of a sequence's tokens: those of an image, whose ids are below 0, stand in a grid, and
 * what follows is behind its longer side.
 */
export class TokenPlaces {
  private readonly places: readonly Place[]
  /** Where the text behind the prompt begins. */
  private readonly next: number

  /** Throws where the ids below 0 are not those of the grids, one after the other. */
  constructor(ids: ArrayLike<number>, grids: readonly TokenGrid[]) {
    const places: Place[] = []
    let [at, next, grid] = [0, 0, 0]
    while (at < ids.length) {
      if (ids[at]! >= 0) {
        places.push([next, next, next])
        next++
        at++
        continue
      }
      const { rows, columns } = grids[grid++] ?? { rows: 0, columns: 0 }
      const count = rows * columns
      for (let i = 0; i < count; i++, at++) {
        if (!(ids[at]! < 0)) throw new Error("a token of an image is missing")
        places.push([next, next + Math.floor(i / columns), next + (i % columns)])
      }
      if (count === 0) throw new Error("a token of an image is in no grid")
      next += Math.max(rows, columns)
    }
    this.places = places
    this.next = next
  }

  /** Returns the place of the token with this index in the sequence. */
  at(index: number): Place {
    const behind = this.next + index - this.places.length
    return this.places[index] ?? [behind, behind, behind]
  }
}

/** The rows of the rotary tables of a pass: `[rows, count]`, or `[3, rows, count]` with sections. */
export const positionsOf = (
  { longAfter = 0, sections }: Pick<DecoderShape, "longAfter" | "sections">,
  { rows, count, pastLens, long, places }: ForwardPass,
): { readonly values: readonly number[]; readonly dimensions: readonly number[] } => {
  const indices = Array.from({ length: rows * count }, (_, i) => {
    const row = Math.floor(i / count)
    return { row, index: pastLens[row]! + (i % count) }
  })
  if (!sections)
    return {
      values: indices.map(({ row, index }) => index + (long?.[row] ? longAfter : 0)),
      dimensions: [rows, count],
    }
  const all = indices.map(({ row, index }) => places?.[row]?.at(index) ?? [index, index, index])
  return {
    values: sections.flatMap((_, axis) => all.map((place) => place[axis]!)),
    dimensions: [sections.length, rows, count],
  }
}
