import { Worker } from "node:worker_threads"
import { GrammarFailed, GrammarLate } from "../sampling/token-mask.ts"
import type { Constraint, Constraints, Grammar } from "./constraint.ts"
import {
  type GrammarThreadData,
  noClosing,
  SharedState,
  type ToGrammarThread,
} from "./grammar-protocol.ts"
import { type GrammarVocabulary, wordsOf } from "./grammar-vocabulary.ts"
import { type AnswerThread, ThreadChoice } from "./thread-choice.ts"

const entry = import.meta.url.endsWith(".ts")
  ? "./grammar-thread-from-source.mjs"
  : "./grammar-thread.js"

/** Threads for grammars that take long to compile, which start with the first such grammar. */
const mostHeavyThreads = 3

/** Masks of a search for a completion that was not prepared, during which the engine waits. */
const mostMasks = 10_000

/** Far longer than a bounded grammar takes: after this time the thread counts as lost. */
const answerMs = 20_000

/** The constraints of one engine, computed in a thread of their own. */
export interface EngineConstraints extends Constraints {
  open(grammar: Grammar): EngineConstraint
  close(): Promise<void>
}

export interface EngineConstraint extends Constraint {
  /**
   * Whether `mask` would return without waiting. A grammar that was just opened is being compiled.
   */
  isReady(): boolean
  /**
   * Begins `closing(most)` in the background, while others' masks are computed. Returns whether it
   * would return without waiting; also false while the grammar is not ready.
   */
  prepareClosing(most: number): boolean
}

/**
 * A forward pass blocks the engine's thread, so masks that are computed meanwhile need a thread of
 * their own. Measured (49k tokens, two busy cores): inline, a
 * token and its mask take 17 µs in the median, but up to milliseconds, and a compilation tens of
 * them, for which all streams of the engine would wait;
 * handing a token over takes 15 to 50 µs, and the mask is there when the pass ends (1 µs). Both
 * sides sleep on shared memory, as waking an event loop costs more.
 * `open` does not wait: failures of a grammar are thrown by the first `mask`, `isComplete` or
 * `closing`, as `GrammarFailed`.
 */
export const makeConstraints = (vocabulary: GrammarVocabulary): EngineConstraints => {
  const choice = new ThreadChoice(() => new GrammarThread(vocabulary), mostHeavyThreads)
  let opened = 0
  return {
    open: (grammar) =>
      new ThreadConstraint(choice.for(grammar), opened++, grammar, wordsOf(vocabulary)),
    close: async () => {
      await Promise.all(choice.threads.map((thread) => thread.terminate()))
    },
  }
}

class GrammarThread implements AnswerThread {
  ended = false
  answers = 0
  private readonly worker: Worker
  private readonly asked = new Int32Array(new SharedArrayBuffer(4))

  constructor(vocabulary: GrammarVocabulary) {
    const data: GrammarThreadData = { vocabulary, asked: this.asked.buffer as SharedArrayBuffer }
    // no inherited flags: those of a test runner or a loader are not meant for this thread
    this.worker = new Worker(new URL(entry, import.meta.url), { workerData: data, execArgv: [] })
    this.worker.unref()
    const end = () => {
      this.ended = true
    }
    this.worker.once("error", end)
    this.worker.once("exit", end)
  }

  ask(message: ToGrammarThread): void {
    this.worker.postMessage(message)
    Atomics.add(this.asked, 0, 1)
    Atomics.notify(this.asked, 0)
  }

  async terminate(): Promise<void> {
    this.ended = true
    await this.worker.terminate()
  }
}

class ThreadConstraint implements EngineConstraint {
  private readonly thread: GrammarThread
  private readonly id: number
  private readonly state: SharedState
  /** The number of masks that were requested. */
  private awaited = 1
  /** A search that goes on in the background, and where it began. */
  private prepared:
    | { readonly most: number; readonly at: number; readonly found: Int32Array }
    | undefined

  constructor(thread: GrammarThread, id: number, grammar: Grammar, maskWords: number) {
    this.thread = thread
    this.id = id
    this.state = new SharedState(maskWords)
    thread.answers++
    thread.ask({ type: "open", id, grammar, state: this.state.buffer })
  }

  isReady(): boolean {
    return this.state.computed >= this.awaited || this.thread.ended
  }

  mask(): Uint32Array {
    this.settle()
    return this.state.mask
  }

  isComplete(): boolean {
    this.settle()
    return this.state.isComplete
  }

  accept(token: number): void {
    this.awaited++
    this.thread.ask({ type: "accept", id: this.id, token })
  }

  rollback(count: number): void {
    this.awaited++
    this.thread.ask({ type: "rollback", id: this.id, count })
  }

  guardedTokens(): number | undefined {
    this.settle()
    return this.state.guardedTokens
  }

  prepareClosing(most: number): boolean {
    if (!this.isReady()) return false
    if (this.thread.ended || this.state.failure !== undefined) return true
    this.prepared ??= { most, at: this.awaited, found: this.search(most) }
    return Atomics.load(this.prepared.found, 0) !== 0
  }

  closing(most: number, masks = mostMasks): readonly number[] | undefined {
    this.settle()
    const { prepared } = this
    const isPrepared = prepared?.most === most && prepared.at === this.awaited
    const found = isPrepared ? prepared.found : this.search(most, masks)
    if (Atomics.wait(found, 0, 0, answerMs) === "timed-out") throw this.lost()
    return found[0] === noClosing ? undefined : [...found.subarray(1, found[0])]
  }

  private search(most: number, masks?: number): Int32Array {
    const found = new Int32Array(new SharedArrayBuffer((most + 1) * 4))
    this.thread.ask({
      type: "closing",
      id: this.id,
      most,
      ...(masks !== undefined && { masks }),
      found: found.buffer as SharedArrayBuffer,
    })
    return found
  }

  release(): void {
    this.thread.answers--
    if (!this.thread.ended) this.thread.ask({ type: "release", id: this.id })
  }

  private settle(): void {
    if (this.thread.ended || !this.state.wait(this.awaited, answerMs)) throw this.lost()
    const { failure } = this.state
    if (failure !== undefined) throw new GrammarFailed(failure)
  }

  private lost(): GrammarLate {
    void this.thread.terminate()
    return new GrammarLate()
  }
}
