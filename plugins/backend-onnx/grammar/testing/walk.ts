import type { Constraint } from "../constraint.ts"
import { bytesOfToken, type GrammarVocabulary, isAllowed, sizeOf } from "../grammar-vocabulary.ts"

/**
 * Writes a random document: each token at random among those that the mask allows. Some first bytes
 * are likelier, so that documents end. Where a check on finished values leaves nothing, the last
 * choice is taken back.
 */
export const walk = (
  constraint: Constraint,
  vocabulary: GrammarVocabulary,
  random: () => number,
  most: number,
): readonly number[] => {
  const written: number[] = []
  const ending = new Set(vocabulary.endTokens)
  const refuted = new Map<string, Set<number>>()
  while (written.length < most) {
    const known = refuted.get(written.join()) ?? new Set()
    const token = chosen(constraint.mask(), vocabulary, random, known)
    if (token === undefined) {
      const last = written.pop()
      if (last === undefined || constraint.guardedTokens() === undefined)
        throw new Error(`a dead end after ${JSON.stringify(textOf(vocabulary, written))}`)
      constraint.rollback(1)
      const before = written.join()
      refuted.set(before, (refuted.get(before) ?? new Set<number>()).add(last))
      continue
    }
    if (ending.has(token)) break
    constraint.accept(token)
    written.push(token)
  }
  return written
}

/** Searches a completion from where the constraint stands. */
export const closingOf = (constraint: Constraint, most: number): readonly number[] | undefined => {
  constraint.seekClosing(most)
  return constraint.closing()
}

const closing = new Set([...Buffer.from('"}]')])

const chosen = (
  mask: Uint32Array,
  vocabulary: GrammarVocabulary,
  random: () => number,
  without: ReadonlySet<number>,
): number | undefined => {
  const allowed: number[] = []
  for (let id = 0; id < sizeOf(vocabulary); id++)
    if (isAllowed(mask, id) && !without.has(id)) allowed.push(id)
  const ends = allowed.filter(
    (id) => vocabulary.endTokens.includes(id) || closing.has(bytesOfToken(vocabulary, id)[0]!),
  )
  const among = ends.length > 0 && random() < 0.25 ? ends : allowed
  return among[Math.floor(random() * among.length)]
}

export const textOf = (vocabulary: GrammarVocabulary, tokens: readonly number[]): string =>
  Buffer.concat(tokens.map((token) => bytesOfToken(vocabulary, token))).toString()

/** A small seeded generator. */
export const randomFrom = (seed: number): (() => number) => {
  let state = seed | 0
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296
  }
}
