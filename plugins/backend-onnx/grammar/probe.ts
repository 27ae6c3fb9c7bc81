import { seededRandom } from "../sampling/random.ts"
import type { GrammarInstance, MatcherHandle } from "./grammar-instance.ts"
import { bytesOfToken, type GrammarVocabulary } from "./grammar-vocabulary.ts"

/** Tokens that are compared where the longest or the shortest is taken. */
const compared = 6

type Prefer = "long" | "short" | "any"

/** One walk for each preference; the shortest tokens end texts soonest, and so see most places. */
const walks: readonly Prefer[] = ["long", "short", "any"]

/**
 * Writes a few documents by chance, and so computes masks in many states of a grammar. Throws
 * `GrammarFailed` where one takes more than the instance's limits. Returns the
 * time of the longest one.
 */
export const probe = (
  instance: GrammarInstance,
  from: MatcherHandle,
  vocabulary: GrammarVocabulary,
  mostSteps: number,
): number => {
  let longestMs = 0
  for (const [seed, prefer] of walks.entries()) {
    const random = seededRandom(seed)
    const matcher = instance.clone(from)
    try {
      for (let step = 0; step < mostSteps; step++) {
        const startedMs = performance.now()
        const mask = instance.mask(matcher)
        longestMs = Math.max(longestMs, performance.now() - startedMs)
        const token = choose(mask, vocabulary, prefer, random)
        if (token === undefined) break
        instance.consume(matcher, token)
      }
    } finally {
      instance.free(matcher)
    }
  }
  return longestMs
}

/** Returns an allowed token that is text; undefined: none. */
const choose = (
  mask: Uint32Array,
  vocabulary: GrammarVocabulary,
  prefer: Prefer,
  random: () => number,
): number | undefined => {
  const words: number[] = []
  for (let word = 0; word < mask.length; word++) if (mask[word] !== 0) words.push(word)
  let best: number | undefined
  for (let tries = 0; tries < compared && words.length > 0; tries++) {
    const word = words[Math.floor(random() * words.length)]!
    const token = word * 32 + bitOf(mask[word]!, random)
    const { length } = bytesOfToken(vocabulary, token)
    if (length === 0) continue
    const known = best === undefined ? undefined : bytesOfToken(vocabulary, best).length
    if (known === undefined || (prefer === "long" ? length > known : length < known)) best = token
    if (prefer === "any") break
  }
  return best
}

const bitOf = (word: number, random: () => number): number => {
  const bits = Array.from({ length: 32 }, (_, bit) => bit).filter((bit) => (word >>> bit) & 1)
  return bits[Math.floor(random() * bits.length)]!
}
