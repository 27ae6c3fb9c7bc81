export interface KvShape {
  readonly layers: number
  readonly kvHeads: number
  readonly headSize: number
}

/**
 * Position of a row's new keys and values in the output of a forward pass, `[2*layers*rows, count,
 * kvHeads*headSize]`, and how many of its tokens to keep.
 */
export interface FreshRow {
  readonly rows: number
  readonly index: number
  readonly count: number
  readonly keep: number
}

/**
 * The capacity for a number of tokens: multiples of 128, and of larger powers of two for long
 * sequences, so that growing copies little.
 */
export const roundedCapacity = (tokens: number): number => {
  let step = 128
  while (tokens > step * 8) step *= 2
  return Math.ceil(Math.max(1, tokens) / step) * step
}

/** Bytes of the keys and values of one token, in float32. */
export const kvTokenBytes = ({ layers, kvHeads, headSize }: KvShape): number =>
  2 * layers * kvHeads * headSize * 4

/** The model's window, limited by the memory for keys and values. */
export const windowWithin = (shape: KvShape & { contextTokens: number }, kvBytes: number): number =>
  Math.min(shape.contextTokens, Math.floor(kvBytes / kvTokenBytes(shape)))

/**
 * Keys and values of several sequences: for each layer two arrays `[rows, kvHeads, capacity,
 * headSize]`.
 */
export class KvBank {
  readonly shape: KvShape
  readonly rows: number
  readonly capacity: number
  /** Keys of layer 0, values of layer 0, keys of layer 1 ... */
  readonly arrays: readonly Float32Array[]

  constructor(shape: KvShape, rows: number, capacity: number) {
    this.shape = shape
    this.rows = rows
    this.capacity = capacity
    this.arrays = Array.from(
      { length: 2 * shape.layers },
      () => new Float32Array(rows * shape.kvHeads * capacity * shape.headSize),
    )
  }

  /** Returns the arrays of some rows, without copying. */
  rowsFrom(first: number, count: number): readonly Float32Array[] {
    const [start, end] = [this.start(first, 0), this.start(first + count, 0)]
    return this.rows === count
      ? this.arrays
      : this.arrays.map((array) => array.subarray(start, end))
  }

  private start(row: number, head: number): number {
    return (row * this.shape.kvHeads + head) * this.capacity * this.shape.headSize
  }

  /** Copies the first `tokens` tokens from a row of any bank. */
  copyRow(row: number, from: KvBank, fromRow: number, tokens: number): void {
    const { kvHeads, headSize } = this.shape
    for (const [i, array] of this.arrays.entries())
      for (let head = 0; head < kvHeads; head++) {
        const start = from.start(fromRow, head)
        array.set(from.arrays[i]!.subarray(start, start + tokens * headSize), this.start(row, head))
      }
  }

  /** Copies `count` tokens from `first` on into `into`, `[2*layers, kvHeads, count, headSize]`. */
  read(row: number, first: number, count: number, into: Float32Array): void {
    const { kvHeads, headSize } = this.shape
    const size = count * headSize
    let at = 0
    for (const array of this.arrays)
      for (let head = 0; head < kvHeads; head++, at += size) {
        const start = this.start(row, head) + first * headSize
        into.set(array.subarray(start, start + size), at)
      }
  }

  /** Copies back the first `count` tokens of what `read` copied out. */
  restore(row: number, first: number, count: number, from: Float32Array): void {
    const { kvHeads, headSize } = this.shape
    const [size, stride] = [count * headSize, from.length / (this.arrays.length * kvHeads)]
    let at = 0
    for (const array of this.arrays)
      for (let head = 0; head < kvHeads; head++, at += stride)
        array.set(from.subarray(at, at + size), this.start(row, head) + first * headSize)
  }

  /**
   * Appends the new keys and values of one row. Returns false when a number is not finite: such a
   * row is cleared, as NaN would reach other rows of a pass even where it is masked.
   */
  write(
    row: number,
    first: number,
    fresh: Float32Array,
    { rows, index, count, keep }: FreshRow,
  ): boolean {
    const { kvHeads, headSize } = this.shape
    const width = kvHeads * headSize
    let check = 0
    for (const [i, array] of this.arrays.entries()) {
      let at = (i * rows + index) * count * width
      for (let token = 0; token < keep; token++)
        for (let head = 0; head < kvHeads; head++) {
          const start = this.start(row, head) + (first + token) * headSize
          for (let j = 0; j < headSize; j++) {
            const value = fresh[at++]!
            // stays 0 unless a value is infinite or NaN
            check += value * 0
            array[start + j] = value
          }
        }
    }
    if (check === 0) return true
    this.clear(row)
    return false
  }

  private clear(row: number): void {
    for (const array of this.arrays) array.fill(0, this.start(row, 0), this.start(row + 1, 0))
  }
}
