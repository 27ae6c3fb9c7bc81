import { type JsonBounds, maxDepth } from "../../../core/ports/endpoint.ts"

const space = 0x20
const quote = 0x22
const backslash = 0x5c
const comma = 0x2c
const colon = 0x3a
const openBracket = 0x5b
const closeBracket = 0x5d
const openBrace = 0x7b
const closeBrace = 0x7d

const media = "data:"
/** The field of sounds and videos in plain base64, with its closing quote. */
const mediaKey = 'data"'

/**
 * Counts what a JSON text holds, piece by piece and before it is parsed. No piece may end inside an
 * escape (`\n`). It finds no errors: that is up to the parser.
 */
export class JsonScan {
  keys = 0
  values = 0
  elements = 0
  inString = false
  /** Characters in strings that are data URIs, or the value of a field `data`. */
  mediaCharacters = 0
  #depth = 0
  /** The number of keys of each open object, by depth. */
  readonly #keysAt: number[] = [0]
  #mostKeys = 0
  #deepest = 0
  /** The first characters of the open string. */
  #head = ""
  /** Whether the last string is such a field, and whether the next value and the open string are its value. */
  #closedKey = false
  #isKeyed = false
  #isData = false
  readonly #bounds: JsonBounds

  constructor(bounds: JsonBounds) {
    this.#bounds = bounds
  }

  push(text: string): void {
    let at = this.inString ? this.#skipString(text, 0) : 0
    while (at < text.length) {
      const code = text.charCodeAt(at++)
      if (code > space) this.#count(code)
      if (code === quote) at = this.#skipString(text, at)
    }
  }

  /** Returns the index behind the string's end, or the length of the text. */
  #skipString(text: string, from: number): number {
    if (this.#head.length < media.length)
      this.#head += text.slice(from, from + media.length - this.#head.length)
    const isMedia = this.#isData || this.#head === media
    let at = from
    while (at < text.length) {
      const code = text.charCodeAt(at++)
      if (code === backslash) at++
      else if (code === quote) {
        this.inString = false
        this.#closedKey = this.#head === mediaKey
        this.#head = ""
        break
      }
    }
    if (isMedia) this.mediaCharacters += at - from
    return at
  }

  #count(code: number): void {
    const isKeyed = this.#isKeyed
    this.#isKeyed = false
    if (code === comma) this.elements++
    else if (code === colon) this.#countKey()
    else if (code === closeBracket || code === closeBrace)
      this.#depth = Math.max(0, this.#depth - 1)
    else if (code === quote) {
      this.values++
      this.inString = true
      this.#isData = isKeyed
    } else if (code === openBracket || code === openBrace) {
      this.values++
      this.#deepest = Math.max(this.#deepest, ++this.#depth)
      this.#keysAt[this.#depth] = 0
    }
  }

  #countKey(): void {
    this.keys++
    this.#isKeyed = this.#closedKey
    const keys = (this.#keysAt[this.#depth] ?? 0) + 1
    this.#keysAt[this.#depth] = keys
    this.#mostKeys = Math.max(this.#mostKeys, keys)
  }

  /** What there is too much of, in words. */
  get excess(): string | undefined {
    const { keys, keysOfObject, values, elements } = this.#bounds
    const most = (count: number) => count.toLocaleString("en")
    if (this.#deepest > maxDepth) return `is nested deeper than ${maxDepth} levels`
    if (this.keys > keys) return `has more than ${most(keys)} keys`
    if (this.#mostKeys > keysOfObject)
      return `has an object of more than ${most(keysOfObject)} keys`
    if (this.values > values) return `has more than ${most(values)} objects, arrays and strings`
    return this.elements > elements ? `has more than ${most(elements)} values` : undefined
  }
}
