import { createHash } from "node:crypto"

/** Length of an entry: four words of hash, and the line. */
const words = 5

/**
 * A hash set of custom_ids: 20 bytes each, in a table at most half full, however long the ids are.
 * Open addressing on SHA-256, cut to 128 bits.
 */
export class CustomIds {
  #slots = 1024
  #table = new Int32Array(this.#slots * words)
  #count = 0

  /** Returns the line that had the id first; undefined: it is new. */
  add(id: string, line: number): number | undefined {
    const digest = createHash("sha256").update(id).digest()
    const hash = [
      digest.readInt32LE(0),
      digest.readInt32LE(4),
      digest.readInt32LE(8),
      digest.readInt32LE(12),
    ]
    const at = this.#find(hash)
    const earlier = this.#table[at + 4]
    if (earlier) return earlier
    this.#table.set([...hash, line], at)
    this.#count += 1
    if (this.#count * 2 > this.#slots) this.#grow()
    return undefined
  }

  /** Index of the entry with this hash, or of the free one for it. */
  #find(hash: ArrayLike<number>): number {
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
        this.#table.set(old.subarray(at, at + words), this.#find(old.subarray(at, at + 4)))
  }
}
