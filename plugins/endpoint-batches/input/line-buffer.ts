/** Grown for one long line, it is not kept for the short ones that follow. */
const keptBytes = 64 * 1024

/** The beginning of a line whose end has not come yet. Holds at most `maxBytes`: what is longer is only counted. */
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

  /** Copied: a source may use its chunk again, and a part of a chunk would keep the whole. */
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

  /** What `read` makes of the line, which is gone then; `undefined` stands for one over the maximum. */
  take<A>(read: (line: Buffer | undefined) => A): A {
    const found = read(this.#isOver ? undefined : this.#bytes.subarray(0, this.#length))
    this.#length = 0
    this.#isOver = false
    if (this.#bytes.length > keptBytes) this.#bytes = Buffer.allocUnsafe(keptBytes)
    return found
  }
}
