import { createHash } from "node:crypto"

/** Four words of hash and the line. */
const words = 5

/** Which custom_ids came before, in 20 bytes each (and as much room again): ids may be long, and 50,000 of them many. */
export class CustomIds {
  #slots = 1024
  #table = new Int32Array(this.#slots * words)
  #count = 0

  /** The line that had it first, where it is not new. */
  add(id: string, line: number): number | undefined {
    const digest = createHash("sha256").update(id).digest()
    const hash = [
      digest.readInt32LE(0),
      digest.readInt32LE(4),
      digest.readInt32LE(8),
      digest.readInt32LE(12),
    ]
    const at = this.#place(hash)
    const earlier = this.#table[at + 4]
    if (earlier) return earlier
    this.#table.set([...hash, line], at)
    this.#count += 1
    if (this.#count * 2 > this.#slots) this.#grow()
    return undefined
  }

  /** Where these words lie, or belong. */
  #place(hash: ArrayLike<number>): number {
    const table = this.#table
    let slot = (hash[0] ?? 0) & (this.#slots - 1)
    for (;;) {
      const at = slot * words
      if (table[at + 4] === 0) return at
      if (
        table[at] === hash[0] &&
        table[at + 1] === hash[1] &&
        table[at + 2] === hash[2] &&
        table[at + 3] === hash[3]
      )
        return at
      slot = (slot + 1) & (this.#slots - 1)
    }
  }

  #grow(): void {
    const old = this.#table
    this.#slots *= 2
    this.#table = new Int32Array(this.#slots * words)
    for (let at = 0; at < old.length; at += words)
      if (old[at + 4] !== 0)
        this.#table.set(old.subarray(at, at + words), this.#place(old.subarray(at, at + 4)))
  }
}
