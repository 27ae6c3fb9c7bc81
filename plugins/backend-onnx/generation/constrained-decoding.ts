import type { Constraint } from "../grammar/constraint.ts"
import type { Sampler } from "../sampling/sampler.ts"
import { allowedTokens, GrammarFailed, type TokenMask } from "../sampling/token-mask.ts"
import type { TextToTokenEncoder } from "../tokenizer/text-to-token-encoder.ts"
import { ForcedCompletion } from "./forced-completion.ts"

/** A constraint whose next mask may still be being computed in another thread. */
export interface PacedConstraint extends Constraint {
  /** Whether `mask` would return without waiting. */
  isReady?(): boolean
}

export interface ConstrainedDecoderOptions {
  readonly closeOnLength: boolean
  /** The constraint applies from the end of this text on. */
  readonly after?: string
  readonly vocabulary: number
  readonly endTokens: ReadonlySet<number>
  readonly textEncoder: TextToTokenEncoder
  /** Ids of control tokens by the text that they stand for in this answer. */
  readonly markers: Readonly<Record<string, number>>
  bytesOf(token: number): Uint8Array
}

// most masks are ready in time; waiting for one that is almost ready is cheaper than losing a step
const graceMs = 2
const patienceMs = 15_000

// a JSON document rarely ends with another byte, so only after these is it worth waiting to find out
const closers: ReadonlySet<number> = new Set(Buffer.from("}]>"))

const maskWithout = (vocabulary: number, tokens: Iterable<number>): TokenMask => {
  const mask = new Uint32Array(Math.ceil(vocabulary / 32)).fill(0xffff_ffff)
  for (const id of tokens) mask[id >> 5]! &= ~(1 << (id & 31))
  return mask
}

/**
 * Chooses the tokens of an answer that follows a grammar. States: free (until the text `after` has appeared; the answer can't end here) -> constrained (what the mask allows)
 * -> closing (the shortest known completion is written without asking the model); free may turn into closing, too.
 */
export class ConstrainedDecoder {
  private readonly constraint: PacedConstraint
  private readonly sampler: Sampler
  private readonly options: ConstrainedDecoderOptions
  private readonly after: Buffer
  private state: "free" | "ruled" | "closing"
  /** The mask of the free state: all tokens but the end tokens. */
  private readonly open: TokenMask | undefined
  /** The last bytes of the free text, which may be the beginning of `after`. */
  private tail = Buffer.alloc(0)
  /** The last byte of the document. */
  private lastByte: number | undefined
  private lateSinceMs: number | undefined
  /** Tokens that are decided already and not returned yet. */
  private certain: number[] = []
  /** The tokens of `after`, which lead from free text to the document. */
  private readonly turn: readonly number[]
  private wayOut: ForcedCompletion | undefined

  constructor(constraint: PacedConstraint, sampler: Sampler, options: ConstrainedDecoderOptions) {
    const { after = "", vocabulary, endTokens, textEncoder, markers } = options
    this.constraint = constraint
    this.sampler = sampler
    this.options = options
    this.after = Buffer.from(after)
    this.state = after ? "free" : "ruled"
    this.open = after ? maskWithout(vocabulary, endTokens) : undefined
    const marker = Object.hasOwn(markers, after) ? markers[after] : undefined
    const turn = marker === undefined ? textEncoder.spell(this.after) : [marker]
    if (!turn)
      throw new GrammarFailed("the model has no tokens for the text that a grammar waits for")
    this.turn = turn
  }

  /** Whether all remaining tokens are decided, so that no forward pass is needed. */
  get isClosing(): boolean {
    return this.state === "closing"
  }

  /** False while `next` would wait for the grammar to be compiled or for the next mask. */
  get isReady(): boolean {
    const asks =
      this.state === "ruled"
        ? !this.certain.length
        : this.state === "free" && this.options.closeOnLength && !this.wayOut
    return !asks || (this.constraint.isReady?.() ?? true)
  }

  /** Waits up to `graceMs` for the mask. Also true when the mask has been late for `patienceMs`: then `next` blocks and reports why. */
  becomesReady(): boolean {
    const startedMs = performance.now()
    while (!this.isReady && performance.now() < startedMs + graceMs);
    if (this.isReady) this.lateSinceMs = undefined
    else this.lateSinceMs ??= startedMs
    return startedMs - (this.lateSinceMs ?? startedMs) > patienceMs || this.isReady
  }

  /** Returns the next token when `left` more may be written, and overwrites the logits. Undefined at the end: the completion has no more tokens, or the document is complete. */
  next(logits: Float32Array, left: number): number | undefined {
    const certain = this.certain.shift()
    if (certain !== undefined || this.state === "closing") return certain
    this.prepareCompletion(left)
    return this.state === "free" ? this.nextFree(logits, left) : this.nextRuled(logits, left)
  }

  /** Returns why the answer ends with the last token, if it does, when `left` more may be written. An end whose mask is not computed yet is found by `next`. */
  end(left: number): "stop" | "length" | undefined {
    if (this.state === "closing") return this.certain.length ? undefined : "length"
    const isRuled = this.state === "ruled" && !this.certain.length
    const mayBeComplete = this.lastByte !== undefined && closers.has(this.lastByte)
    if (
      isRuled &&
      (!left || (mayBeComplete ? this.becomesReady() : this.isReady)) &&
      this.mustEnd()
    )
      return "stop"
    return left ? undefined : "length"
  }

  release(): void {
    this.constraint.release()
  }

  /** Called with the first token rather than in the constructor, as it waits for the grammar. */
  private prepareCompletion(left: number): void {
    const { closeOnLength, endTokens } = this.options
    const afterTurn = this.state === "free" ? left - this.turn.length : left
    if (!closeOnLength || this.wayOut || afterTurn < 0) return
    this.wayOut = new ForcedCompletion(
      (most) => this.constraint.closing(most)?.filter((token) => !endTokens.has(token)),
      afterTurn,
    )
  }

  private mustEnd(): boolean {
    const { vocabulary, endTokens } = this.options
    const few = allowedTokens(this.constraint.mask(), vocabulary, endTokens.size)
    return (
      few !== undefined &&
      few.length > 0 &&
      few.every((token) => endTokens.has(token)) &&
      this.constraint.isComplete()
    )
  }

  private close(way: readonly number[]): number | undefined {
    this.state = "closing"
    this.certain = [...way]
    return this.certain.shift()
  }

  private nextRuled(logits: Float32Array, left: number): number | undefined {
    const { wayOut } = this
    if (wayOut?.isDue(left)) return this.close(wayOut.way!)
    if (this.mustEnd()) return undefined
    const token = this.sampler.next(logits, this.constraint.mask())
    if (this.options.endTokens.has(token)) {
      if (!this.constraint.isComplete())
        throw new GrammarFailed("the grammar let a text end that is not complete")
      return token
    }
    this.constraint.accept(token)
    this.lastByte = this.options.bytesOf(token).at(-1)
    return !wayOut || wayOut.follow(token, left - 1) ? token : this.close(wayOut.way!)
  }

  private nextFree(logits: Float32Array, left: number): number | undefined {
    const way = this.wayOut?.way && [...this.turn, ...this.wayOut.way]
    if (way && left <= way.length) return this.close(way)
    const token = this.sampler.next(logits, this.open)
    const bytes = this.options.bytesOf(token)
    const text = Buffer.concat([this.tail, bytes])
    const at = text.indexOf(this.after)
    if (at < 0) {
      this.tail = text.subarray(Math.max(0, text.length - this.after.length + 1))
      return token
    }
    const tokens = this.cut(token, bytes, text.length - at - this.after.length)
    if (way && left - tokens.length < way.length - this.turn.length) return this.close(way)
    this.state = "ruled"
    this.certain = [...tokens]
    return this.certain.shift()
  }

  /** Returns tokens for the bytes of `token` without its last `excess` bytes, which would reach into the constrained part. */
  private cut(token: number, bytes: Uint8Array, excess: number): readonly number[] {
    if (!excess) return [token]
    const tokens = this.options.textEncoder.spell(bytes.subarray(0, bytes.length - excess))
    if (!tokens)
      throw new GrammarFailed(
        "the model has no tokens for the end of the text that a grammar waits for",
      )
    return tokens
  }
}
