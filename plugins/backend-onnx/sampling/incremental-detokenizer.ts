import type { ChosenLogprobs } from "./logprobs.ts"
import type { StopRange } from "./stop-scanner.ts"
import { type StreamedText, TextStream } from "./text-stream.ts"

/** A token of the answer with its likeliest alternatives, in bytes: a token may be half a character. */
export interface TokenDetail {
  readonly bytes: Uint8Array
  readonly logprob: number
  readonly top: readonly { readonly bytes: Uint8Array; readonly logprob: number }[]
}

export interface Piece {
  readonly text: string
  /** Of the tokens whose text is out now; only where they are asked for. */
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
  /** Where stop strings count. */
  readonly stopRange?: StopRange
}

/** Tokens to text on UTF-8 and stop-string borders; the details of a token come out with the last of its text, those of a cut token never. */
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

  /** What was held back, when no more tokens come. A stop string may be in it that could have been the beginning of what ends their range. */
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
