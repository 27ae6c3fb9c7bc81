import { bytesOfToken, type GrammarVocabulary, sizeOf } from "./grammar-vocabulary.ts"

const codesOf = (text: string): readonly number[] => [...Buffer.from(text, "latin1")]
const spaces: ReadonlySet<number> = new Set(codesOf(" \n\r\t"))
const quote = 0x22
const bracket = 0x5b

/**
 * Bytes that lead to an end soonest first: closing brackets, then short values, then what opens
 * more to close.
 */
const order = codesOf('}]":,01tfn{[aA-._@/bB')
/** Where a value of any type begins, a digit is the shortest. */
const orderOfValues = codesOf('}]:,01"tfn{[aA-._@/bB')
/** In free text: one character of each kind that a pattern may require. */
const kinds = codesOf("aA0-. _@/:1bB")
/** Where so many bytes may follow, text is free. */
const freeBytes = 60
const mostKinds = 5
const mostChoices = 24
/** Longer tokens are rarely of use in a completion. */
const longestToken = 24

const latin1 = (bytes: Uint8Array): string =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("latin1")

/** The tokens of a vocabulary, for completions that are searched byte by byte. */
export class ClosingTokens {
  /** The same ids, of which only one for each byte is text. Tokens without text stay. */
  readonly singleBytes: GrammarVocabulary
  private readonly vocabulary: GrammarVocabulary
  /** The token of each byte. */
  private readonly ofByte = new Map<number, number>()
  private readonly ends: ReadonlySet<number>
  private readonly byText = new Map<string, number>()
  private readonly longest: number

  constructor(vocabulary: GrammarVocabulary) {
    this.vocabulary = vocabulary
    this.ends = new Set(vocabulary.endTokens)
    let longest = 1
    const ends = new Uint32Array(sizeOf(vocabulary))
    const bytes: number[] = []
    for (let id = 0; id < ends.length; id++) {
      const own = bytesOfToken(vocabulary, id)
      if (own.length > 0 && own.length <= longestToken && !this.byText.has(latin1(own))) {
        this.byText.set(latin1(own), id)
        longest = Math.max(longest, own.length)
        if (own.length === 1) {
          this.ofByte.set(own[0]!, id)
          bytes.push(own[0]!)
        }
      }
      ends[id] = bytes.length
    }
    this.longest = longest
    const { endTokens } = vocabulary
    this.singleBytes = { bytes: Uint8Array.from(bytes), ends, endTokens }
  }

  byteOf(id: number): number | undefined {
    return bytesOfToken(this.singleBytes, id)[0]
  }

  idOf(byte: number): number | undefined {
    return this.ofByte.get(byte)
  }

  /** The single bytes of a token; a token without text is itself. */
  split(token: number): readonly number[] | undefined {
    const bytes = bytesOfToken(this.vocabulary, token)
    if (bytes.length === 0) return [token]
    const ids = [...bytes].map((byte) => this.ofByte.get(byte))
    return ids.includes(undefined) ? undefined : (ids as number[])
  }

  /**
   * Returns the allowed ids that are worth a try, the most promising first. `literals`: bytes at
   * which free text may end, where that is not a string of JSON.
   */
  choices(mask: Uint32Array, literals: readonly number[] = []): readonly number[] {
    const all: number[] = []
    for (let word = 0; word < mask.length; word++)
      for (let bits = mask[word]!; bits !== 0; bits &= bits - 1) {
        const id = word * 32 + (31 - Math.clz32(bits & -bits))
        if (!this.ends.has(id)) all.push(id)
      }
    const text = all.filter((id) => !spaces.has(this.byteOf(id) ?? -1))
    const ids = text.length > 0 ? text : all
    if (ids.length >= freeBytes)
      return literals.length > 0
        ? this.choicesAmong([...literals, ...kinds], new Set(all))
        : this.choicesInText(new Set(ids))
    const bytes = new Set(ids.map((id) => this.byteOf(id)))
    const ranks = bytes.has(quote) && bytes.has(bracket) ? orderOfValues : order
    const rankOf = (id: number) => {
      const byte = this.byteOf(id) ?? 0
      const at = ranks.indexOf(byte)
      return at < 0 ? ranks.length + byte : at
    }
    return ids.sort((a, b) => rankOf(a) - rankOf(b)).slice(0, mostChoices)
  }

  private choicesInText(ids: ReadonlySet<number>): readonly number[] {
    const end = this.ofByte.get(quote)
    if (end !== undefined && ids.has(end)) return [end]
    return this.choicesAmong(kinds, ids).slice(0, mostKinds)
  }

  private choicesAmong(bytes: readonly number[], ids: ReadonlySet<number>): readonly number[] {
    const found = [...new Set(bytes)].flatMap((byte) => {
      const id = this.ofByte.get(byte)
      return id !== undefined && ids.has(id) ? [id] : []
    })
    return (found.length > 0 ? found : [...ids]).slice(0, mostChoices)
  }

  /** Spells single bytes with as few tokens as possible. */
  spell(ids: readonly number[]): readonly number[] {
    const text = ids.map((id) => {
      const byte = this.byteOf(id)
      return byte === undefined ? undefined : String.fromCharCode(byte)
    })
    // from the end to the beginning: how many tokens the rest takes, and the first of them
    const best = Array.from({ length: ids.length + 1 }, () => ({ count: 0, token: 0, next: 0 }))
    for (let at = ids.length - 1; at >= 0; at--) {
      best[at] = { count: best[at + 1]!.count + 1, token: ids[at]!, next: at + 1 }
      let spelling = text[at]
      for (let end = at + 1; spelling !== undefined && end < ids.length; end++) {
        const more: string | undefined = text[end]
        if (more === undefined || end - at >= this.longest) break
        spelling += more
        const token = this.byText.get(spelling)
        const count = best[end + 1]!.count + 1
        if (token !== undefined && count < best[at]!.count)
          best[at] = { count, token, next: end + 1 }
      }
    }
    const tokens: number[] = []
    for (let at = 0; at < ids.length; at = best[at]!.next) tokens.push(best[at]!.token)
    return tokens
  }
}
