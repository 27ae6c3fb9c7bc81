import type { Grammar } from "./constraint.ts"
import type { GrammarVocabulary } from "./grammar-vocabulary.ts"

/** What an engine asks its grammar thread. Everything about one answer is done in the order in which it was asked. */
export type ToGrammarThread =
  | {
      readonly type: "open"
      readonly id: number
      readonly grammar: Grammar
      readonly state: SharedArrayBuffer
    }
  | { readonly type: "accept"; readonly id: number; readonly token: number }
  | {
      readonly type: "closing"
      readonly id: number
      readonly most: number
      readonly found: SharedArrayBuffer
    }
  | { readonly type: "release"; readonly id: number }

export interface GrammarThreadData {
  readonly vocabulary: GrammarVocabulary
  /** One word: how often the engine asked. The thread sleeps on it. */
  readonly asked: SharedArrayBuffer
}

// What both share of one answer: these words, then the mask, then the text of a failure.
const wordsBefore = 4
const mostTextBytes = 1_024

const fields = {
  /** How many masks were computed: the first when it was opened, then one for each accepted token. The engine sleeps on it. */
  computed: 0,
  isComplete: 1,
  /** Bytes of the failure's text plus one; 0: it did not fail. */
  failed: 2,
} as const

/** The state of one answer, seen from either side. */
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

  get failure(): string | undefined {
    const length = Atomics.load(this.words, fields.failed)
    return length === 0 ? undefined : Buffer.from(this.text.slice(0, length - 1)).toString()
  }

  /** The thread's: one mask more. */
  publish(mask: Uint32Array, isComplete: boolean): void {
    this.mask.set(mask)
    Atomics.store(this.words, fields.isComplete, isComplete ? 1 : 0)
    this.step()
  }

  /** The thread's: there will be no mask. */
  fail(message: string): void {
    const { written } = new TextEncoder().encodeInto(message, this.text)
    Atomics.store(this.words, fields.failed, written + 1)
    this.step()
  }

  private step(): void {
    Atomics.add(this.words, fields.computed, 1)
    Atomics.notify(this.words, fields.computed)
  }

  /** The engine's: sleeps until `count` masks were computed; false when that took longer. */
  wait(count: number, timeoutMs: number): boolean {
    for (let seen = this.computed; seen < count; seen = this.computed) {
      if (Atomics.wait(this.words, fields.computed, seen, timeoutMs) === "timed-out") return false
    }
    return true
  }
}

/** Answer of a `closing`: 0 not yet, -1 none, else 1 + the number of tokens, which follow. */
export const noClosing = -1
