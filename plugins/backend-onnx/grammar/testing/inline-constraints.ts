import type { Constraint, Constraints, Grammar } from "../constraint.ts"
import type { GrammarVocabulary } from "../grammar-vocabulary.ts"
import { Matchers } from "../matchers.ts"

/** Constraints that are computed in the caller's thread, for tests. */
export const inlineConstraints = (vocabulary: GrammarVocabulary): Constraints => {
  const matchers = new Matchers(vocabulary)
  let opened = 0
  const open = (grammar: Grammar): Constraint => {
    const id = opened++
    matchers.add(id, grammar)
    let mask: Uint32Array | undefined
    return {
      mask: () => {
        mask ??= matchers.mask(id).slice()
        return mask
      },
      accept: (token) => {
        mask = undefined
        matchers.accept(id, token)
      },
      rollback: (count) => {
        mask = undefined
        matchers.rollback(id, count)
      },
      guardedTokens: () => matchers.guardedTokens(id),
      isComplete: () => matchers.isComplete(id),
      closing: (most, masks) => matchers.closingOf(id, most, masks),
      release: () => matchers.release(id),
    }
  }
  return { open }
}
