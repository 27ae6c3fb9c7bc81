/** The buffer shrinks back to this size after a long line. */
const keptBytes = 64 * 1024

/**
 * Collects a line that spans chunks. Holds at most `maxBytes`: a longer line is dropped, and only
 * noted.
 */
export class LineBuffer {
  #bytes = Buffer.allocUnsafe(keptBytes)
  #length = 0
  #isOver = false
  readonly #maxBytes: number

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  get isEmpty(): boolean {
    return this.#length === 0 && !this.#isOver
  }

  /** Copies: the source may reuse its chunk, and a slice would keep the whole chunk in memory. */
  add(part: Buffer): void {
    if (this.#isOver) return
    const length = this.#length + part.length
    if (length > this.#maxBytes) {
      this.#isOver = true
      this.#length = 0
      this.#bytes = Buffer.allocUnsafe(keptBytes)
      return
    }
    if (length > this.#bytes.length) {
      const grown = Buffer.allocUnsafe(
        Math.max(length, Math.min(this.#maxBytes, this.#bytes.length * 2)),
      )
      this.#bytes.copy(grown, 0, 0, this.#length)
      this.#bytes = grown
    }
    part.copy(this.#bytes, this.#length)
    this.#length = length
  }

  /**
   * Passes the line to `read`, and empties the buffer; `undefined`: the line is over the maximum.
   */
  take<A>(read: (line: Buffer | undefined) => A): A {
    const found = read(this.#isOver ? undefined : this.#bytes.subarray(0, this.#length))
    this.#length = 0
    this.#isOver = false
    if (this.#bytes.length > keptBytes) this.#bytes = Buffer.allocUnsafe(keptBytes)
    return found
  }
}
