import { Closings } from "../closings.ts"
import type { Constraint, Constraints, Grammar } from "../constraint.ts"
import type { GrammarVocabulary } from "../grammar-vocabulary.ts"
import { Matchers } from "../matchers.ts"

/** Constraints that are computed in the caller's thread, for tests. */
export const inlineConstraints = (vocabulary: GrammarVocabulary): Constraints => {
  const matchers = new Matchers(vocabulary)
  const closings = new Closings(vocabulary)
  let opened = 0
  const open = (grammar: Grammar): Constraint => {
    const id = opened++
    matchers.add(id, grammar)
    let mask: Uint32Array | undefined
    let isSought = false
    const tokens: number[] = []
    let found: readonly number[] | undefined
    return {
      mask: () => {
        mask ??= matchers.mask(id).slice()
        return mask
      },
      accept: (token) => {
        mask = undefined
        matchers.accept(id, token)
        tokens.push(token)
      },
      rollback: (count) => {
        mask = undefined
        matchers.rollback(id, count)
        tokens.splice(-count)
      },
      guardedTokens: () => matchers.guardedTokens(id),
      isComplete: () => matchers.isComplete(id),
      seekClosing: (most) => {
        if (!isSought) closings.open(id, grammar)
        isSought = true
        found = closings.find(id, 0, tokens, most)
      },
      closing: () => found,
      release: () => {
        matchers.release(id)
        closings.release(id)
      },
    }
  }
  return { open }
}
