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
/** The same for searches of their completions. */
const mostHeavyClosers = 1

/** Far longer than a bounded grammar takes: after this time the thread counts as lost. */
const answerMs = 20_000

/** The constraints of one engine, computed in a thread of their own. */
export interface EngineConstraints extends Constraints {
  open(grammar: Grammar): EngineConstraint
  close(): Promise<void>
}

export interface EngineConstraint extends Constraint {
  /**
   * Whether `mask` and `closing` would return without waiting. A grammar that was just opened is
   * being compiled.
   */
  isReady(): boolean
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
  const closers = new ThreadChoice(() => new GrammarThread(vocabulary), mostHeavyClosers)
  return {
    open: (grammar) => {
      const id = opened++
      const closing = new ClosingSearches(id, grammar, () => closers.for(grammar))
      return new ThreadConstraint(choice.for(grammar), id, grammar, wordsOf(vocabulary), closing)
    },
    close: async () => {
      const threads = [...choice.threads, ...closers.threads]
      await Promise.all(threads.map((thread) => thread.terminate()))
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

/**
 * The searches for completions of one answer. They take a thread of their own, as one takes
 * milliseconds, for which nobody's masks should wait.
 */
class ClosingSearches {
  private readonly id: number
  private readonly grammar: Grammar
  private readonly start: () => GrammarThread
  private thread: GrammarThread | undefined
  private readonly tokens: number[] = []
  /** The number of first tokens that the thread knows. */
  private known = 0
  private found: Int32Array | undefined

  constructor(id: number, grammar: Grammar, start: () => GrammarThread) {
    this.id = id
    this.grammar = grammar
    this.start = start
  }

  get isReady(): boolean {
    return !this.found || Atomics.load(this.found, 0) !== 0 || this.thread!.ended
  }

  accept(token: number): void {
    this.tokens.push(token)
  }

  rollback(count: number): void {
    this.tokens.splice(-count)
    this.known = Math.min(this.known, this.tokens.length)
  }

  seek(most: number): void {
    const isFirst = !this.thread
    this.thread ??= this.start()
    if (isFirst) this.thread.answers++
    this.found = new Int32Array(new SharedArrayBuffer((most + 1) * 4))
    this.thread.ask({
      type: "seek",
      id: this.id,
      ...(isFirst && { grammar: this.grammar }),
      kept: this.known,
      more: this.tokens.slice(this.known),
      most,
      found: this.found.buffer as SharedArrayBuffer,
    })
    this.known = this.tokens.length
  }

  /** A search that is lost found nothing. */
  result(): readonly number[] | undefined {
    const { found } = this
    if (!found || this.thread!.ended) return undefined
    if (Atomics.wait(found, 0, 0, answerMs) === "timed-out") return undefined
    return found[0] === noClosing ? undefined : [...found.subarray(1, found[0])]
  }

  release(): void {
    if (this.thread) this.thread.answers--
    if (this.thread?.ended === false) this.thread.ask({ type: "release", id: this.id })
  }
}

class ThreadConstraint implements EngineConstraint {
  private readonly thread: GrammarThread
  private readonly id: number
  private readonly state: SharedState
  /** The number of masks that were requested. */
  private awaited = 1
  private readonly closings: ClosingSearches

  constructor(
    thread: GrammarThread,
    id: number,
    grammar: Grammar,
    maskWords: number,
    closings: ClosingSearches,
  ) {
    this.thread = thread
    this.id = id
    this.closings = closings
    this.state = new SharedState(maskWords)
    thread.answers++
    thread.ask({ type: "open", id, grammar, state: this.state.buffer })
  }

  isReady(): boolean {
    const hasMask = this.state.computed >= this.awaited || this.thread.ended
    return hasMask && this.closings.isReady
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
    this.closings.accept(token)
    this.thread.ask({ type: "accept", id: this.id, token })
  }

  rollback(count: number): void {
    this.awaited++
    this.closings.rollback(count)
    this.thread.ask({ type: "rollback", id: this.id, count })
  }

  guardedTokens(): number | undefined {
    this.settle()
    return this.state.guardedTokens
  }

  seekClosing(most: number): void {
    this.closings.seek(most)
  }

  closing(): readonly number[] | undefined {
    return this.closings.result()
  }

  release(): void {
    this.thread.answers--
    if (!this.thread.ended) this.thread.ask({ type: "release", id: this.id })
    this.closings.release()
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
