import { shortestClosing } from "./closing.ts"
import { literalsIn } from "./closing-literals.ts"
import { ClosingTokens } from "./closing-tokens.ts"
import type { Grammar } from "./constraint.ts"
import type { GrammarVocabulary } from "./grammar-vocabulary.ts"
import { Matchers } from "./matchers.ts"

/**
 * Searches completions of answers byte by byte: a mask over 256 tokens takes microseconds, and
 * every way to an end can be written with them.
 */
export class Closings {
  private readonly tokens: ClosingTokens
  private readonly matchers: Matchers
  /** The number of single bytes of each token of an answer. */
  private readonly lengths = new Map<number, number[]>()
  private readonly literals = new Map<number, readonly number[]>()

  constructor(vocabulary: GrammarVocabulary) {
    this.tokens = new ClosingTokens(vocabulary)
    this.matchers = new Matchers(this.tokens.singleBytes)
  }

  /** Throws `GrammarFailed`. */
  open(id: number, grammar: Grammar): void {
    this.matchers.add(id, grammar)
    this.lengths.set(id, [])
    this.literals.set(id, literalsIn(grammar))
  }

  /**
   * Returns the shortest completion found, of at most `most` tokens, of the answer that has the
   * first `kept` tokens of the last search and then `more`.
   */
  find(
    id: number,
    kept: number,
    more: readonly number[],
    most: number,
  ): readonly number[] | undefined {
    const lengths = this.lengths.get(id)
    if (!lengths) return undefined
    const undone = lengths.splice(kept).reduce((sum, length) => sum + length, 0)
    if (undone > 0) this.matchers.rollback(id, undone)
    for (const token of more) {
      const bytes = this.tokens.split(token)
      if (!bytes) return undefined
      for (const byte of bytes) this.matchers.accept(id, byte)
      lengths.push(bytes.length)
    }
    const literals = this.literals.get(id)
    return this.matchers.use(id, (matcher) => shortestClosing(matcher, this.tokens, most, literals))
  }

  release(id: number): void {
    this.literals.delete(id)
    if (this.lengths.delete(id)) this.matchers.release(id)
  }
}
