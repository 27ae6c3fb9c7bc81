/** Collects chunks of a body into parts of `partBytes`. Copies: the source may reuse its memory. */
export class PartBuffer {
  #bytes = new Uint8Array(65_536)
  #length = 0
  readonly partBytes: number

  constructor(partBytes: number) {
    this.partBytes = partBytes
  }

  get length(): number {
    return this.#length
  }

  /** Takes what fits into the part, and returns how much that was. */
  add(chunk: Uint8Array): number {
    const taken = Math.min(chunk.byteLength, this.partBytes - this.#length)
    this.#grow(this.#length + taken)
    this.#bytes.set(chunk.subarray(0, taken), this.#length)
    this.#length += taken
    return taken
  }

  /** The part so far, valid until the next `add`; the buffer begins anew. */
  take(): Uint8Array {
    const part = this.#bytes.subarray(0, this.#length)
    this.#length = 0
    return part
  }

  #grow(needed: number): void {
    if (needed <= this.#bytes.byteLength) return
    const grown = new Uint8Array(Math.min(this.partBytes, Math.max(needed, this.#bytes.length * 2)))
    grown.set(this.#bytes.subarray(0, this.#length))
    this.#bytes = grown
  }
}
