import type { Usage } from "../../../core/usage.ts"
import type { TokenizedText } from "../chat-format/embed-texts.ts"

/** An item of a request: its place there, and what its vector costs. */
export interface ReadItem {
  readonly index: number
  readonly truncated: boolean
  readonly usage: Usage
}

/** What an engine reads of an item: all of it, or a window of a text. */
export interface ItemPart {
  readonly of: ReadItem
  /** Given the vector of this part, returns that of the item when all its parts are there. */
  whole(vector: Float32Array): Float32Array | undefined
}

export const itemPart = (of: ReadItem): ItemPart => ({ of, whole: (vector) => vector })

/**
 * Makes the vector of a text from those of its `windows` windows, in whatever order they come: their
 * mean by weight, with Euclidean norm 1. The last one given returns it.
 */
const makeWindowMean = (windows: number) => {
  let left = windows
  let sum: Float64Array | undefined
  return (vector: Float32Array, weight: number): Float32Array | undefined => {
    sum ??= new Float64Array(vector.length)
    for (let i = 0; i < vector.length; i++) sum[i] = sum[i]! + weight * vector[i]!
    left -= 1
    if (left > 0) return undefined
    let square = 0
    for (const value of sum) square += value * value
    const norm = Math.sqrt(square) || 1
    return Float32Array.from(sum, (value) => value / norm)
  }
}

/** The windows of a text, in their order. */
export const windowParts = (of: ReadItem, { windows }: TokenizedText): readonly ItemPart[] => {
  if (windows.length === 1) return [itemPart(of)]
  const mean = makeWindowMean(windows.length)
  return windows.map(({ fresh }) => ({ of, whole: (vector) => mean(vector, fresh) }))
}
