import type { Json } from "../../core/json.ts"
import { Backtracking } from "../../plugins/backend-onnx/generation/backtracking.ts"
import { Closings } from "../../plugins/backend-onnx/grammar/closings.ts"
import type { Compiled } from "../../plugins/backend-onnx/grammar/compile-job.ts"
import compileJob from "../../plugins/backend-onnx/grammar/compile-job.ts"
import type { Grammar } from "../../plugins/backend-onnx/grammar/constraint.ts"
import {
  bytesOfToken,
  type GrammarVocabulary,
  isAllowed,
  type SharedVocabulary,
  sizeOf,
} from "../../plugins/backend-onnx/grammar/grammar-vocabulary.ts"
import { Matchers } from "../../plugins/backend-onnx/grammar/matchers.ts"
import { analyseSchema } from "../../plugins/backend-onnx/grammar/schema-report.ts"
import { GrammarFailed } from "../../plugins/backend-onnx/sampling/token-mask.ts"

/** What a strict request with this schema is answered before it runs. */
export const compiled = (schema: Json, vocabulary?: SharedVocabulary): Compiled =>
  compileJob({ kind: "schema", schema, isStrict: true, ...(vocabulary && { vocabulary }) })

/** Whether finished values are checked beside the masks. */
export const isGuarded = (schema: Json): boolean => analyseSchema(schema).guards !== undefined

/** The masks of answers one after another, as an engine computes them. */
export class Answers {
  private readonly vocabulary: GrammarVocabulary
  private readonly matchers: Matchers
  private readonly closings: Closings
  private grammar: Grammar | undefined
  private id = 0

  constructor(vocabulary: GrammarVocabulary) {
    this.vocabulary = vocabulary
    this.matchers = new Matchers(vocabulary)
    this.closings = new Closings(vocabulary)
  }

  /** Opens an answer and computes its first mask. Throws `GrammarFailed`. */
  open(grammar: Grammar): void {
    this.grammar = grammar
    this.matchers.add(++this.id, grammar)
    this.matchers.mask(this.id)
  }

  close(): void {
    this.matchers.release(this.id)
  }

  /**
   * Writes tokens by chance under the masks, backtracking where no token leads on, then the way to
   * an end; undefined: none was found.
   */
  written(
    random: () => number,
    limits: { readonly tokens: number; readonly closing: number },
    onMask: (ms: number) => void,
  ): readonly number[] | undefined {
    const { vocabulary, matchers, id } = this
    const tokens: number[] = []
    const backtracking = new Backtracking<undefined>({
      vocabulary: sizeOf(vocabulary),
      mostUndone: 4_096,
      bytesOf: (token) => bytesOfToken(vocabulary, token),
    })
    while (tokens.length < limits.tokens) {
      const startedMs = performance.now()
      const mask = matchers.mask(id)
      onMask(performance.now() - startedMs)
      const guarded = matchers.guardedTokens(id)
      if (guarded !== undefined) backtracking.release(guarded)
      const choices = guarded === undefined ? mask : backtracking.open(mask)
      if (!choices) {
        const lost = backtracking.leave()
        if (!lost) throw new GrammarFailed("a dead end")
        matchers.rollback(id, lost.tokens.length)
        tokens.length -= lost.tokens.length
        continue
      }
      const token = this.chosen(choices, random)
      if (vocabulary.endTokens.includes(token)) return tokens
      if (guarded !== undefined) backtracking.add(token, undefined)
      matchers.accept(id, token)
      tokens.push(token)
    }
    this.closings.open(id, this.grammar!)
    const way = this.closings.find(id, 0, tokens, limits.closing)
    this.closings.release(id)
    return way && [...tokens, ...way]
  }

  private chosen(mask: Uint32Array, random: () => number): number {
    const size = sizeOf(this.vocabulary)
    const start = Math.floor(random() * size)
    for (let step = 0; step < size; step++)
      if (isAllowed(mask, (start + step) % size)) return (start + step) % size
    throw new GrammarFailed("a dead end")
  }

  /** Whether these tokens are a whole answer. */
  accepts(tokens: Iterable<number>): boolean {
    try {
      for (const token of tokens) this.matchers.accept(this.id, token)
      return this.matchers.isComplete(this.id)
    } catch (cause) {
      if (!(cause instanceof GrammarFailed)) throw cause
      return false
    }
  }
}
