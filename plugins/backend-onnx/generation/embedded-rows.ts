import type { GenerateRequest } from "./decoder-jobs.ts"

/** Below 0 stands a row of an image, which no sampler may choose and no draft may have. */
const isToken = (id: number): boolean => id >= 0

/** The tokens before the first row of an image. */
export const tokensOnly = (ids: readonly number[]): readonly number[] => {
  const end = ids.findIndex((id) => !isToken(id))
  return end < 0 ? ids : ids.slice(0, end)
}

/** The rows of a prompt that are read in place of tokens. */
export class EmbeddedRows {
  /** By their place in the prompt. */
  private readonly rows = new Map<number, Float32Array>()

  /** Throws where there are not as many rows, of the decoder's width, as places for them. */
  constructor({ promptIds, embedded = [] }: GenerateRequest) {
    const places = [...promptIds.keys()].filter((at) => !isToken(promptIds[at]!))
    if (!places.length) return
    const values = embedded.reduce((sum, { length }) => sum + length, 0)
    const width = values / places.length
    let next = 0
    for (const all of embedded)
      for (let from = 0; from < all.length; from += width)
        this.rows.set(places[next++]!, all.subarray(from, from + width))
    if (!Number.isInteger(width) || next !== places.length)
      throw new Error(`${values} values for ${places.length} places of images`)
  }

  /** Returns the rows of the places `from` to `to`, by their index from there; undefined: none. */
  within(from: number, to: number): ReadonlyMap<number, Float32Array> | undefined {
    if (!this.rows.size) return undefined
    const found = new Map<number, Float32Array>()
    for (let at = from; at < to; at++) {
      const row = this.rows.get(at)
      if (row) found.set(at - from, row)
    }
    return found
  }
}
