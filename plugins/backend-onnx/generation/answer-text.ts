import { IncrementalDetokenizer } from "../sampling/incremental-detokenizer.ts"
import type { ChosenLogprobs } from "../sampling/logprobs.ts"
import type { DecoderEvent, GenerateRequest } from "./decoder-jobs.ts"
import type { Model } from "./model.ts"

type BytesOf = (token: number) => Uint8Array

/** Stop strings don't apply where the whole answer is constrained. */
const stopsOf = ({ stop, grammar }: GenerateRequest): readonly string[] =>
  grammar && grammar.stopUntil === undefined ? [] : stop

/** The bytes of a token; control tokens that count as text of the answer have those of their text. */
export const bytesWith = (bytesOf: BytesOf, markers: GenerateRequest["markers"] = {}): BytesOf => {
  const bytesOfMarker = new Map(
    Object.entries(markers).map(([text, token]) => [token, Buffer.from(text)]),
  )
  return bytesOfMarker.size ? (token) => bytesOfMarker.get(token) ?? bytesOf(token) : bytesOf
}

/** Turns the tokens of an answer into its text, which ends before a stop string. */
const answerText = (
  request: GenerateRequest,
  bytesOf: BytesOf,
  dropsFirstSpace: boolean,
): IncrementalDetokenizer => {
  const { grammar, topLogprobs } = request
  const stopAfter = grammar?.after ?? request.stopAfter
  const stopRange = {
    ...(stopAfter && { after: stopAfter }),
    ...(grammar?.stopUntil && { until: grammar.stopUntil }),
  }
  return new IncrementalDetokenizer(stopsOf(request), bytesOf, {
    isDetailed: topLogprobs !== undefined,
    dropsFirstSpace,
    stopRange,
  })
}

/**
 * The tokens of an answer on their way out. Those that may still be taken back wait: nobody has
 * seen them, and they are not charged.
 */
export class AnswerText {
  private readonly text: IncrementalDetokenizer
  private readonly endTokens: ReadonlySet<number>
  private readonly emit: (event: DecoderEvent) => void
  private readonly waiting: { readonly token: number; readonly chosen?: ChosenLogprobs }[] = []
  private sent = 0

  constructor(
    request: GenerateRequest,
    { endTokens, startsWithSpace }: Pick<Model, "endTokens" | "startsWithSpace">,
    bytesOf: BytesOf,
    emit: (event: DecoderEvent) => void,
  ) {
    this.text = answerText(request, bytesOf, startsWithSpace)
    this.endTokens = endTokens
    this.emit = emit
  }

  /** The number of tokens, sent or not. */
  get length(): number {
    return this.sent + this.waiting.length
  }

  add(token: number, chosen?: ChosenLogprobs): void {
    this.waiting.push({ token, ...(chosen && { chosen }) })
  }

  takeBack(count: number): void {
    this.waiting.splice(-count)
  }

  /** Sends all tokens but the last `held`; returns true at a stop string. */
  send(held: number): boolean {
    while (this.waiting.length > held) {
      const { token, chosen } = this.waiting.shift()!
      const { stopped, ...piece } = this.endTokens.has(token)
        ? { text: "", stopped: false }
        : this.text.push(token, chosen)
      this.emit({ type: "token", outputTokens: ++this.sent, ...piece })
      if (stopped) return true
    }
    return false
  }

  /** `isCut`: a stop string was found. */
  finish(reason: "stop" | "length", isCut: boolean, isWhole: boolean | undefined): void {
    const wasCut = isCut || this.send(0)
    // text that was held back as a possible stop string is released, unless one was found
    const { stopped, ...piece } = wasCut ? { text: "", stopped: true } : this.text.end()
    this.emit({
      type: "finish",
      reason: stopped ? "stop" : reason,
      ...piece,
      ...(isWhole !== undefined && { isWhole }),
    })
  }
}
