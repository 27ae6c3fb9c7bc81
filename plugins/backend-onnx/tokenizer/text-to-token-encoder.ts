/**
 * Encodes bytes with the tokens of a vocabulary, greedily by longest match; not the model's own
 * tokenization. The table is built on first use.
 */
export class TextToTokenEncoder {
  private readonly vocabulary: number
  private readonly bytesOf: (token: number) => Uint8Array
  private tokens: ReadonlyMap<string, number> | undefined
  private longest = 1

  constructor(vocabulary: number, bytesOf: (token: number) => Uint8Array) {
    this.vocabulary = vocabulary
    this.bytesOf = bytesOf
  }

  private table(): ReadonlyMap<string, number> {
    const tokens = new Map<string, number>()
    for (let id = 0; id < this.vocabulary; id++) {
      const key = Buffer.from(this.bytesOf(id)).toString("latin1")
      if (!key || tokens.has(key)) continue
      tokens.set(key, id)
      this.longest = Math.max(this.longest, key.length)
    }
    return tokens
  }

  /** Returns token ids; undefined where the vocabulary has no tokens for the bytes. */
  encode(bytes: Uint8Array): readonly number[] | undefined {
    this.tokens ??= this.table()
    const rest = Buffer.from(bytes).toString("latin1")
    const ids: number[] = []
    for (let at = 0; at < rest.length; ) {
      let length = Math.min(this.longest, rest.length - at)
      while (length > 0 && !this.tokens.has(rest.slice(at, at + length))) length--
      if (length === 0) return undefined
      ids.push(this.tokens.get(rest.slice(at, at + length))!)
      at += length
    }
    return ids
  }
}
