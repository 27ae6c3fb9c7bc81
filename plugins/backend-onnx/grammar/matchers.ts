import { GrammarFailed } from "../sampling/token-mask.ts"
import type { Grammar } from "./constraint.ts"
import { GrammarInstance, type MatcherHandle } from "./grammar-instance.ts"
import type { GrammarVocabulary } from "./grammar-vocabulary.ts"
import { GuardedAnswer } from "./guards/answer-guard.ts"
import { GuardedTokens } from "./guards/guarded-tokens.ts"
import { AnswerGuard, Matcher } from "./matcher.ts"
import { analyseSchema } from "./schema-report.ts"
import { webAssembly } from "./web-assembly.ts"

interface ReadGrammar {
  readonly text: string
  /** Absent: nothing is checked on finished values. */
  readonly guarded?: GuardedAnswer
}

/**
 * The grammar as llguidance's text: of a schema, the part that can be enforced, and what is checked
 * beside it. Whether that is all of it was checked by the plan.
 */
const readGrammar = (grammar: Grammar): ReadGrammar => {
  if (grammar.kind === "lark") {
    const documents = (grammar.documents ?? []).map((document) => {
      const { guards } = analyseSchema(document.schema)
      return { ...document, ...(guards && { guards }) }
    })
    const isGuarded = documents.some((document) => "guards" in document)
    return {
      text: grammar.lark,
      ...(isGuarded && { guarded: new GuardedAnswer(documents) }),
    }
  }
  const { enforced, guards } = analyseSchema(grammar.schema)
  if (!enforced) throw new GrammarFailed("no document satisfies the schema")
  return {
    text: JSON.stringify(enforced),
    ...(guards && { guarded: new GuardedAnswer([{ before: "", guards }]) }),
  }
}

/** The number of compiled grammars kept for later answers with the same grammar (LRU). */
const keptGrammars = 32

/**
 * Beyond this the instance is replaced at the next open, as the memory of WebAssembly never
 * shrinks.
 */
const mostMemoryBytes = 384 * 2 ** 20

interface Open {
  readonly key: string
  /** Tokens accepted so far, to rebuild the matcher in a fresh instance. */
  readonly tokens: number[]
  /** Handle in the instance of `generation`; handles of older generations are lost. */
  handle: MatcherHandle
  generation: number
  /** What is checked on finished values. */
  readonly guard: AnswerGuard | undefined
}

const isTrap = (cause: unknown): boolean =>
  cause instanceof webAssembly.RuntimeError || cause instanceof RangeError

/**
 * All matchers of an engine, in one instance. A matcher that makes the instance trap fails, and its
 * grammar is refused from then on; the
 * others are rebuilt in a fresh instance, from the tokens they accepted, when they are next asked.
 */
export class Matchers {
  private readonly vocabulary: GrammarVocabulary
  private readonly guarding: GuardedTokens
  private instance: GrammarInstance
  private generation = 0
  private readonly open = new Map<number, Open>()
  /** Grammars that were read, by their JSON, least recently used first. */
  private readonly readings = new Map<string, ReadGrammar>()
  /** Compiled grammars by key, least recently used first. */
  private readonly grammars = new Map<string, MatcherHandle>()
  private readonly trapped = new Set<string>()

  constructor(vocabulary: GrammarVocabulary) {
    this.vocabulary = vocabulary
    // made now, as it takes tens of milliseconds, for which all answers would wait
    this.guarding = new GuardedTokens(vocabulary)
    this.instance = new GrammarInstance(vocabulary)
  }

  get memoryBytes(): number {
    return this.instance.memoryBytes
  }

  /** Throws `GrammarFailed`. */
  add(id: number, grammar: Grammar): void {
    if (this.instance.memoryBytes > mostMemoryBytes) this.restart()
    const { text, guarded } = this.readingOf(grammar)
    const key = `${grammar.kind} ${text}`
    if (this.trapped.has(key)) throw new GrammarFailed("the grammar can't be run")
    this.guarded(key, () =>
      this.open.set(id, {
        key,
        tokens: [],
        handle: this.instance.clone(this.compiled(key)),
        generation: this.generation,
        guard: guarded && new AnswerGuard(guarded, this.guarding),
      }),
    )
  }

  accept(id: number, token: number): void {
    const open = this.get(id)
    if (this.vocabulary.endTokens.includes(token)) return
    if (!this.run(open, (matcher) => matcher.consume(token)))
      throw new GrammarFailed(`the grammar does not allow token ${token} here`)
    open.tokens.push(token)
  }

  /** Takes back the last `count` tokens. */
  rollback(id: number, count: number): void {
    const open = this.get(id)
    this.run(open, (matcher) => matcher.rollback(count))
    open.tokens.splice(-count)
  }

  /** As `Constraint` has it. */
  guardedTokens(id: number): number | undefined {
    return this.get(id).guard?.guardedTokens
  }

  /** Valid until the next call. */
  mask(id: number): Uint32Array {
    return this.run(this.get(id), (matcher) => matcher.mask())
  }

  isComplete(id: number): boolean {
    return this.run(this.get(id), (matcher) => matcher.isAccepting())
  }

  /** Runs something on the matcher of an answer, which must stay where it is. */
  use<A>(id: number, work: (matcher: Matcher) => A): A {
    return this.run(this.get(id), work)
  }

  release(id: number): void {
    const open = this.open.get(id)
    this.open.delete(id)
    if (open?.generation === this.generation) this.instance.free(open.handle)
  }

  private get(id: number): Open {
    const open = this.open.get(id)
    if (!open) throw new GrammarFailed("the grammar is not open")
    return open
  }

  /**
   * Runs a call on a matcher. Clones share the lexer's states, which are limited: when the shared
   * lexer is full, it tries once more with a fresh one.
   */
  private run<A>(open: Open, use: (matcher: Matcher) => A): A {
    const once = () =>
      this.guarded(open.key, () => {
        if (open.generation !== this.generation) this.rebuild(open)
        return use(new Matcher(this.instance, open.handle, open.guard))
      })
    try {
      return once()
    } catch (cause) {
      if (isTrap(cause) || this.trapped.has(open.key)) throw cause
      this.forget(open.key)
      if (open.generation === this.generation) this.instance.free(open.handle)
      open.generation = -1
      return once()
    }
  }

  private readingOf(grammar: Grammar): ReadGrammar {
    const key = JSON.stringify(grammar)
    const reading = this.readings.get(key) ?? readGrammar(grammar)
    this.readings.delete(key)
    this.readings.set(key, reading)
    if (this.readings.size > keptGrammars) this.readings.delete(this.readings.keys().next().value!)
    return reading
  }

  private rebuild(open: Open): void {
    const handle = this.instance.clone(this.compiled(open.key))
    try {
      for (const token of open.tokens) this.instance.consume(handle, token)
    } catch (cause) {
      if (!isTrap(cause)) this.instance.free(handle)
      throw cause
    }
    open.handle = handle
    open.generation = this.generation
  }

  private compiled(key: string): MatcherHandle {
    const known = this.grammars.get(key)
    this.grammars.delete(key)
    const split = key.indexOf(" ")
    const matcher =
      known ?? this.instance.compile(key.slice(0, split) as Grammar["kind"], key.slice(split + 1))
    this.grammars.set(key, matcher)
    if (this.grammars.size > keptGrammars) this.forget(this.grammars.keys().next().value!)
    return matcher
  }

  private forget(key: string): void {
    const handle = this.grammars.get(key)
    this.grammars.delete(key)
    if (handle !== undefined) this.instance.free(handle)
  }

  private guarded<A>(key: string, use: () => A): A {
    try {
      return use()
    } catch (cause) {
      if (!isTrap(cause)) throw cause
      if (this.trapped.size >= keptGrammars) this.trapped.clear()
      this.trapped.add(key)
      this.restart()
      throw new GrammarFailed("the grammar can't be run", { cause })
    }
  }

  private restart(): void {
    this.instance = new GrammarInstance(this.vocabulary)
    this.grammars.clear()
    this.generation++
  }
}
