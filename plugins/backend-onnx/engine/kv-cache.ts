export interface CacheShape {
  readonly layers: number
  readonly kvHeads: number
  readonly headSize: number
}

const growth = 128
const roundUp = (tokens: number): number => Math.ceil(tokens / growth) * growth

/** Keys and values of one sequence: for each layer two arrays `[kvHeads, capacity, headSize]`. Grows in steps of 128 tokens. */
export class KvCache {
  readonly shape: CacheShape
  /** Keys of layer 0, values of layer 0, keys of layer 1 ... */
  arrays: Float32Array[]
  capacity: number
  /** Tokens that are in it. */
  length = 0

  constructor(shape: CacheShape, tokens: number) {
    this.shape = shape
    this.capacity = roundUp(Math.max(1, tokens))
    this.arrays = Array.from({ length: 2 * shape.layers }, () => new Float32Array(shape.kvHeads * this.capacity * shape.headSize))
  }

  /** Makes room for `more` tokens. */
  reserve(more: number): void {
    if (this.length + more <= this.capacity) return
    const { kvHeads, headSize } = this.shape
    const capacity = roundUp(this.length + more)
    this.arrays = this.arrays.map((old) => {
      const grown = new Float32Array(kvHeads * capacity * headSize)
      for (let head = 0; head < kvHeads; head++) {
        const from = head * this.capacity * headSize
        grown.set(old.subarray(from, from + this.length * headSize), head * capacity * headSize)
      }
      return grown
    })
    this.capacity = capacity
  }

  /** Forgets all but the first `length` tokens. */
  rewind(length: number): void {
    this.length = Math.min(this.length, length)
  }

  /** Appends what a step answered: `[2*layers, count, kvHeads*headSize]`. */
  append(fresh: Float32Array, count: number): void {
    const { kvHeads, headSize } = this.shape
    let at = 0
    for (const array of this.arrays)
      for (let token = 0; token < count; token++)
        for (let head = 0; head < kvHeads; head++, at += headSize) array.set(fresh.subarray(at, at + headSize), (head * this.capacity + this.length + token) * headSize)
    this.length += count
  }
}
