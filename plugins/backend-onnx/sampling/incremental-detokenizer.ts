import type { ChosenLogprobs } from "./logprobs.ts"
import type { StopRange } from "./stop-scanner.ts"
import { type StreamedText, TextStream } from "./text-stream.ts"

/**
 * A token of the answer with its likeliest alternatives, as bytes: a token may be part of a
 * character.
 */
export interface TokenDetail {
  readonly bytes: Uint8Array
  readonly logprob: number
  readonly top: readonly { readonly bytes: Uint8Array; readonly logprob: number }[]
}

export interface Piece {
  readonly text: string
  /**
   * Details of the tokens whose text is in this piece; only when log-probabilities are requested.
   */
  readonly details?: readonly TokenDetail[]
}

interface Held {
  readonly start: number
  readonly end: number
  readonly detail: TokenDetail
}

export interface DetokenizerOptions {
  readonly isDetailed?: boolean
  readonly dropsFirstSpace?: boolean
  /** The part of the text in which stop strings are searched. */
  readonly stopRange?: StopRange
}

/**
 * Turns tokens into text at boundaries of UTF-8 characters and stop strings. The details of a token
 * are returned with the last part of its text, those of a token that is cut off never.
 */
export class IncrementalDetokenizer {
  private readonly stream: TextStream
  private readonly bytesOf: (token: number) => Uint8Array
  private readonly isDetailed: boolean
  private held: Held[] = []
  private bytesIn = 0
  private dropSpace: boolean

  constructor(
    stops: readonly string[],
    bytesOf: (token: number) => Uint8Array,
    { isDetailed = false, dropsFirstSpace = false, stopRange }: DetokenizerOptions = {},
  ) {
    this.stream = new TextStream(stops, stopRange)
    this.bytesOf = bytesOf
    this.isDetailed = isDetailed
    this.dropSpace = dropsFirstSpace
  }

  private bytesFor(token: number): Uint8Array {
    const bytes = this.bytesOf(token)
    if (!this.dropSpace || !bytes.length) return bytes
    this.dropSpace = false
    return bytes[0] === 0x20 ? bytes.subarray(1) : bytes
  }

  private detailOf(bytes: Uint8Array, { logprob, top }: ChosenLogprobs): TokenDetail {
    return {
      bytes: Uint8Array.from(bytes),
      logprob,
      top: top.map((other) => ({
        bytes: Uint8Array.from(this.bytesOf(other.id)),
        logprob: other.logprob,
      })),
    }
  }

  push(token: number, chosen?: ChosenLogprobs): Piece & { readonly stopped: boolean } {
    const bytes = this.bytesFor(token)
    const start = this.bytesIn
    this.bytesIn += bytes.length
    if (this.isDetailed && chosen)
      this.held.push({ start, end: this.bytesIn, detail: this.detailOf(bytes, chosen) })
    return this.out(this.stream.push(bytes), false)
  }

  /**
   * Returns the text that was held back, after the last token. It may hold a stop string that could
   * also have begun the text that ends their range.
   */
  end(): Piece & { readonly stopped: boolean } {
    return this.out(this.stream.end(), true)
  }

  private out(
    { text, stopped, heldBytes }: StreamedText,
    isLast: boolean,
  ): Piece & { readonly stopped: boolean } {
    if (!this.isDetailed) return { text, stopped }
    const outBytes = this.bytesIn - heldBytes
    const isOut = ({ start, end }: Held) => (stopped ? start < outBytes : isLast || end <= outBytes)
    const out = this.held.filter(isOut)
    this.held = this.held.filter((held) => !out.includes(held))
    return { text, stopped, details: out.map(({ detail }) => detail) }
  }
}
