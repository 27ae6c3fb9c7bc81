import type { Grammar } from "./constraint.ts"
import type { GrammarVocabulary } from "./grammar-vocabulary.ts"

/** Messages of an engine to its grammar thread. Those about one answer are handled in order. */
export type ToGrammarThread =
  | {
      readonly type: "open"
      readonly id: number
      readonly grammar: Grammar
      readonly state: SharedArrayBuffer
    }
  | { readonly type: "accept"; readonly id: number; readonly token: number }
  | { readonly type: "rollback"; readonly id: number; readonly count: number }
  | {
      readonly type: "seek"
      readonly id: number
      /** With the first search of an answer. */
      readonly grammar?: Grammar
      /** The first tokens of the last search that the answer still has, and those behind them. */
      readonly kept: number
      readonly more: readonly number[]
      readonly most: number
      readonly found: SharedArrayBuffer
    }
  | { readonly type: "release"; readonly id: number }

export interface GrammarThreadData {
  readonly vocabulary: GrammarVocabulary
  /** One word: the number of messages that the engine posted. The thread sleeps on it. */
  readonly asked: SharedArrayBuffer
}

// Shared memory of one answer: these words, then the mask, then the message of a failure.
const wordsBefore = 4
const mostTextBytes = 1_024

const fields = {
  /**
   * The number of computed masks: the first at opening, then one for each accepted token and each
   * rollback. The engine sleeps on it.
   */
  computed: 0,
  isComplete: 1,
  /** Bytes of the failure's message plus one; 0: no failure. */
  failed: 2,
  /** `guardedTokens` plus one; 0: nothing is guarded. */
  guarded: 3,
} as const

/** The shared state of one answer, for both sides. */
export class SharedState {
  readonly buffer: SharedArrayBuffer
  readonly mask: Uint32Array
  private readonly words: Int32Array
  private readonly text: Uint8Array

  constructor(
    maskWords: number,
    buffer = new SharedArrayBuffer((wordsBefore + maskWords) * 4 + mostTextBytes),
  ) {
    this.buffer = buffer
    this.words = new Int32Array(buffer, 0, wordsBefore)
    this.mask = new Uint32Array(buffer, wordsBefore * 4, maskWords)
    this.text = new Uint8Array(buffer, (wordsBefore + maskWords) * 4)
  }

  static over(buffer: SharedArrayBuffer): SharedState {
    return new SharedState((buffer.byteLength - mostTextBytes) / 4 - wordsBefore, buffer)
  }

  get computed(): number {
    return Atomics.load(this.words, fields.computed)
  }

  get isComplete(): boolean {
    return Atomics.load(this.words, fields.isComplete) === 1
  }

  get guardedTokens(): number | undefined {
    const guarded = Atomics.load(this.words, fields.guarded)
    return guarded === 0 ? undefined : guarded - 1
  }

  get failure(): string | undefined {
    const length = Atomics.load(this.words, fields.failed)
    return length === 0 ? undefined : Buffer.from(this.text.slice(0, length - 1)).toString()
  }

  /** Called by the thread: publishes the next mask. */
  publish(mask: Uint32Array, isComplete: boolean, guardedTokens: number | undefined): void {
    this.mask.set(mask)
    Atomics.store(this.words, fields.guarded, guardedTokens === undefined ? 0 : guardedTokens + 1)
    Atomics.store(this.words, fields.isComplete, isComplete ? 1 : 0)
    this.step()
  }

  /** Called by the thread: publishes a failure. */
  fail(message: string): void {
    const { written } = new TextEncoder().encodeInto(message, this.text)
    Atomics.store(this.words, fields.failed, written + 1)
    this.step()
  }

  private step(): void {
    Atomics.add(this.words, fields.computed, 1)
    Atomics.notify(this.words, fields.computed)
  }

  /** Called by the engine: sleeps until `count` masks are computed. Returns false on time-out. */
  wait(count: number, timeoutMs: number): boolean {
    for (let seen = this.computed; seen < count; seen = this.computed) {
      if (Atomics.wait(this.words, fields.computed, seen, timeoutMs) === "timed-out") return false
    }
    return true
  }
}

/**
 * Result of `seek` in its first word: 0 pending, -1 none, otherwise 1 + the number of tokens,
 * which follow.
 */
export const noClosing = -1
