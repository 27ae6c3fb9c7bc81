import type { Constraint } from "../grammar/constraint.ts"
import type { Sampler } from "../sampling/sampler.ts"
import { allowedTokens, DeadEnd, GrammarFailed, type TokenMask } from "../sampling/token-mask.ts"
import type { TextToTokenEncoder } from "../tokenizer/text-to-token-encoder.ts"
import { Backtracking } from "./backtracking.ts"
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
  readonly maxTokens: number
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

// tokens that may be chosen anew are computed, but not charged
const leastUndone = 256

// a JSON document rarely ends with another byte, so only after these is it worth waiting to find
// out
const closers: ReadonlySet<number> = new Set(Buffer.from("}]>"))

const maskWithout = (vocabulary: number, tokens: Iterable<number>): TokenMask => {
  const mask = new Uint32Array(Math.ceil(vocabulary / 32)).fill(0xffff_ffff)
  for (const id of tokens) mask[id >> 5]! &= ~(1 << (id & 31))
  return mask
}

/** The state before a token, other than the constraint's. */
interface Before {
  readonly last: number | undefined
  readonly forced: ForcedCompletion["state"] | undefined
}

/**
 * Chooses the tokens of an answer that follows a grammar. States: free (until the text `after` has
 * appeared; the answer can't end here) -> constrained (what the mask allows)
 * -> closing (the shortest known completion is written without asking the model); free may turn
 * into closing, too. Where the mask is empty, the answer goes back to an earlier choice (`leave`).
 */
export class ConstrainedDecoder {
  private readonly constraint: PacedConstraint
  private readonly sampler: Sampler
  private readonly options: ConstrainedDecoderOptions
  private readonly after: Buffer
  private state: "free" | "constrained" | "closing"
  /** The mask of the free state: all tokens but the end tokens. */
  private readonly open: TokenMask | undefined
  /** The last bytes of the free text, which may be the beginning of `after`. */
  private tail = Buffer.alloc(0)
  private lateSinceMs: number | undefined
  /** Tokens that are decided already and not returned yet. */
  private certain: number[] = []
  /** The tokens of `after`, which lead from free text to the document. */
  private readonly transition: readonly number[]
  private readonly forced: ForcedCompletion | undefined
  /** The last token may have to be taken back, as no completion may fit after it. */
  private isUncertain = false
  /** The last token of the document. */
  private last: number | undefined
  /** The tokens that can still be taken back, where a mask may be empty. */
  private readonly backtracking: Backtracking<Before>
  /** The allowed tokens that are not known to lead to a dead end; absent: all that are allowed. */
  private choices: TokenMask | undefined

  constructor(constraint: PacedConstraint, sampler: Sampler, options: ConstrainedDecoderOptions) {
    const { after = "", vocabulary, endTokens, textEncoder, markers } = options
    this.constraint = constraint
    this.sampler = sampler
    this.options = options
    const { bytesOf, maxTokens } = options
    const mostUndone = Math.max(leastUndone, maxTokens)
    this.backtracking = new Backtracking({ vocabulary, mostUndone, bytesOf })
    this.after = Buffer.from(after)
    this.state = after ? "free" : "constrained"
    this.open = after ? maskWithout(vocabulary, endTokens) : undefined
    const marker = Object.hasOwn(markers, after) ? markers[after] : undefined
    const transition = marker === undefined ? textEncoder.encode(this.after) : [marker]
    if (!transition)
      throw new GrammarFailed("the model has no tokens for the text that a grammar waits for")
    this.transition = transition
    this.forced = this.prepareCompletion(maxTokens)
  }

  /** The search runs while the prompt is read. */
  private prepareCompletion(left: number): ForcedCompletion | undefined {
    const { closeOnLength, endTokens } = this.options
    const afterTransition = this.state === "free" ? left - this.transition.length : left
    if (!closeOnLength || afterTransition < 0) return undefined
    const search = {
      begin: (most: number) => this.constraint.seekClosing(most),
      result: () => this.constraint.closing()?.filter((token) => !endTokens.has(token)),
    }
    return new ForcedCompletion(search, afterTransition)
  }

  /** Whether all remaining tokens are decided, so that no forward pass is needed. */
  get isClosing(): boolean {
    return this.state === "closing"
  }

  /** False while `next` would wait for the grammar to be compiled or for the next mask. */
  get isReady(): boolean {
    const asks =
      this.forced?.isSearching || (this.state === "constrained" && this.certain.length === 0)
    return !asks || (this.constraint.isReady?.() ?? true)
  }

  /**
   * Waits up to `graceMs` for the mask. Also true when the mask has been late for `patienceMs`:
   * then `next` blocks and reports why.
   */
  becomesReady(): boolean {
    const startedMs = performance.now()
    while (!this.isReady && performance.now() < startedMs + graceMs);
    if (this.isReady) this.lateSinceMs = undefined
    else this.lateSinceMs ??= startedMs
    return startedMs - (this.lateSinceMs ?? startedMs) > patienceMs || this.isReady
  }

  /** The number of last tokens that may be taken back, so that they must not go out yet. */
  get held(): number {
    return Math.max(this.backtracking.held, this.isUncertain ? 1 : 0)
  }

  /** Whether the text is a whole document. */
  get isWhole(): boolean {
    if (this.state === "free" || this.certain.length > 0) return false
    return this.state === "closing" || this.constraint.isComplete()
  }

  /**
   * Called before `next`. Where no token leads on, takes back the tokens up to an earlier choice,
   * which is made anew, and where no completion fits, the last token; returns their number. Throws
   * `DeadEnd`.
   */
  leave(): number {
    return this.settleCompletion() || this.leaveDeadEnd()
  }

  /** Takes back a token after which no completion fits, and writes the one before it instead. */
  private settleCompletion(): number {
    const isUncertain = this.isUncertain
    this.isUncertain = false
    if (this.forced?.settle() !== false || !isUncertain) return 0
    this.constraint.rollback(1)
    this.sampler.undo(this.last!)
    this.backtracking.drop()
    this.state = "closing"
    this.certain = [...this.forced.completion!]
    return 1
  }

  private leaveDeadEnd(): number {
    if (this.state !== "constrained" || this.certain.length > 0) return 0
    const guarded = this.constraint.guardedTokens()
    if (guarded === undefined) return 0
    this.backtracking.release(guarded)
    this.choices = this.backtracking.open(this.constraint.mask())
    if (this.choices) return 0
    const lost = this.backtracking.leave()
    if (!lost) throw new DeadEnd()
    this.constraint.rollback(lost.tokens.length)
    for (const token of lost.tokens) this.sampler.undo(token)
    this.last = lost.state.last
    if (this.forced && lost.state.forced) this.forced.state = lost.state.forced
    return lost.tokens.length
  }

  /**
   * Returns the next token when `left` more may be written, and overwrites the logits. Undefined at
   * the end: the completion has no more tokens, or the document is complete.
   */
  next(logits: Float32Array, left: number): number | undefined {
    const certain = this.certain.shift()
    if (certain !== undefined || this.state === "closing") return certain
    return this.state === "free" ? this.nextFree(logits, left) : this.nextConstrained(logits, left)
  }

  /**
   * Returns why the answer ends with the last token, if it does, when `left` more may be written.
   * An end whose mask is not computed yet is found by `next`.
   */
  end(left: number): "stop" | "length" | undefined {
    if (this.state === "closing") return this.certain.length ? undefined : "length"
    // the next step says whether the last token stays
    if (this.isUncertain) return undefined
    const isConstrained = this.state === "constrained" && !this.certain.length
    const lastByte = this.last === undefined ? undefined : this.options.bytesOf(this.last).at(-1)
    const mayBeComplete = lastByte !== undefined && closers.has(lastByte)
    if (
      isConstrained &&
      (!left || (mayBeComplete ? this.becomesReady() : this.isReady)) &&
      this.mustEnd()
    )
      return "stop"
    return left ? undefined : "length"
  }

  release(): void {
    this.constraint.release()
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

  private close(completion: readonly number[]): number | undefined {
    this.state = "closing"
    this.certain = [...completion]
    return this.certain.shift()
  }

  private nextConstrained(logits: Float32Array, left: number): number | undefined {
    const { forced } = this
    if (this.mustEnd()) return undefined
    if (forced?.isDue(left)) return this.close(forced.completion!)
    const { choices } = this
    const token = this.sampler.next(logits, choices ?? this.constraint.mask())
    if (this.options.endTokens.has(token)) {
      if (!this.constraint.isComplete())
        throw new GrammarFailed("the grammar let a text end that is not complete")
      return token
    }
    if (choices) this.backtracking.add(token, { last: this.last, forced: forced?.state })
    this.constraint.accept(token)
    this.last = token
    this.isUncertain = forced?.follow(token, left - 1) ?? false
    return token
  }

  private nextFree(logits: Float32Array, left: number): number | undefined {
    const completion = this.forced?.completion && [...this.transition, ...this.forced.completion]
    if (completion && left <= completion.length) return this.close(completion)
    const token = this.sampler.next(logits, this.open)
    const bytes = this.options.bytesOf(token)
    const text = Buffer.concat([this.tail, bytes])
    const at = text.indexOf(this.after)
    if (at < 0) {
      this.tail = text.subarray(Math.max(0, text.length - this.after.length + 1))
      return token
    }
    const tokens = this.cut(token, bytes, text.length - at - this.after.length)
    if (completion && left - tokens.length < completion.length - this.transition.length)
      return this.close(completion)
    this.state = "constrained"
    this.certain = [...tokens]
    return this.certain.shift()
  }

  /**
   * Returns tokens for the bytes of `token` without its last `excess` bytes, which would reach into
   * the constrained part.
   */
  private cut(token: number, bytes: Uint8Array, excess: number): readonly number[] {
    if (!excess) return [token]
    const tokens = this.options.textEncoder.encode(bytes.subarray(0, bytes.length - excess))
    if (!tokens)
      throw new GrammarFailed(
        "the model has no tokens for the end of the text that a grammar waits for",
      )
    return tokens
  }
}

/** Makes the decoder, or releases the constraint and throws. */
export const constrainedDecoder = (
  ...[constraint, ...more]: ConstructorParameters<typeof ConstrainedDecoder>
): ConstrainedDecoder => {
  try {
    return new ConstrainedDecoder(constraint, ...more)
  } catch (cause) {
    constraint.release()
    throw cause
  }
}
