import type { GrammarInstance, MatcherHandle } from "./grammar-instance.ts"
import type { AnswerState, GuardedAnswer } from "./guards/answer-guard.ts"
import type { GuardedTokens } from "./guards/guarded-tokens.ts"

/** The state after a token, and the outermost guarded value that is open there. */
interface Guarded {
  readonly state: AnswerState
  readonly value: string | undefined
  /** The number of tokens before the one that began it. */
  readonly since: number
}

/** Follows the documents of one answer, token by token. */
export class AnswerGuard {
  private readonly answer: GuardedAnswer
  private readonly tokens: GuardedTokens
  /** The state after each token; the first is the beginning. */
  private readonly states: Guarded[]

  constructor(
    answer: GuardedAnswer,
    tokens: GuardedTokens,
    states: Guarded[] = [{ state: answer.start, value: undefined, since: 0 }],
  ) {
    this.answer = answer
    this.tokens = tokens
    this.states = states
  }

  private get last(): Guarded {
    return this.states.at(-1)!
  }

  get mayEnd(): boolean {
    return this.answer.mayEnd(this.last.state)
  }

  /** As `Constraint` has it. */
  get guardedTokens(): number {
    const { value, since } = this.last
    return value === undefined ? 0 : this.states.length - 1 - since
  }

  /** False: the token finishes something that is not accepted. */
  take(token: number): boolean {
    const { last } = this
    this.answer.renew()
    const state = this.answer.take(last.state, token, this.tokens.textOf(token))
    if (!state) return false
    const value = this.answer.guardedAt(state)
    this.states.push({
      state,
      value,
      since: value === last.value ? last.since : this.states.length - 1,
    })
    return true
  }

  narrow(mask: Uint32Array): void {
    this.tokens.narrow(mask, this.answer, this.last.state)
  }

  rollback(count: number): void {
    this.states.length -= count
  }

  clone(): AnswerGuard {
    return new AnswerGuard(this.answer, this.tokens, [this.last])
  }
}

/** A matcher of an instance with what is checked beside its grammar. Free it in the end. */
export class Matcher {
  readonly handle: MatcherHandle
  private readonly instance: GrammarInstance
  private readonly guard: AnswerGuard | undefined

  constructor(instance: GrammarInstance, handle: MatcherHandle, guard: AnswerGuard | undefined) {
    this.instance = instance
    this.handle = handle
    this.guard = guard
  }

  clone(): Matcher {
    return new Matcher(this.instance, this.instance.clone(this.handle), this.guard?.clone())
  }

  /** Valid until the next call. */
  mask(): Uint32Array {
    const mask = this.instance.mask(this.handle)
    this.guard?.narrow(mask)
    return mask
  }

  consume(token: number): boolean {
    if (!this.instance.consume(this.handle, token)) return false
    if (this.guard?.take(token) !== false) return true
    this.instance.rollback(this.handle, 1)
    return false
  }

  isAccepting(): boolean {
    return this.guard?.mayEnd !== false && this.instance.isAccepting(this.handle)
  }

  rollback(count: number): void {
    this.instance.rollback(this.handle, count)
    this.guard?.rollback(count)
  }

  /** Returns the bytes that the grammar forces. Call it on a clone only, as it advances. */
  forced(): Uint8Array {
    return this.instance.forced(this.handle)
  }

  free(): void {
    this.instance.free(this.handle)
  }
}
