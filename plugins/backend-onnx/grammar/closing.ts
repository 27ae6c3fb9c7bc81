import type { ClosingTokens } from "./closing-tokens.ts"
import type { Matcher } from "./matcher.ts"

/**
 * Limits of tokens tried in one state and of masks computed in one search, which is a heuristic,
 * not an enumeration.
 */
const widest = 12
const mostMasks = 6_000

/** A search that computes one mask in each step, and returns what it finds. */
export type ClosingSearch = Generator<undefined, readonly number[] | undefined, undefined>

/**
 * Searches the shortest completion that it finds within `most` tokens. It first follows the most
 * promising tokens greedily; where that never ends (`a*b` along `a`), all kinds of
 * characters in turn, and then searches depth first with a growing limit of length (iterative
 * deepening). It ends where the text may end, even if more could follow. End it with `return` where
 * its steps are not all taken.
 */
export function* closingSearch(
  matcher: Matcher,
  tokens: ClosingTokens,
  most: number,
): ClosingSearch {
  for (const inTurn of [false, true]) {
    const bounds = { limit: most, wide: 1, masks: most + 1, inTurn }
    const straight = yield* search(matcher, tokens, bounds)
    if (straight) return straight
  }
  const bounds = { limit: 1, wide: widest, masks: mostMasks, inTurn: false }
  while (bounds.limit <= most && bounds.masks > 0) {
    const found = yield* search(matcher, tokens, bounds)
    if (found || bounds.limit === most) return found
    bounds.limit = Math.min(most, bounds.limit + (bounds.limit < 8 ? 1 : bounds.limit))
  }
  return undefined
}

/** Takes at most `steps` of a search; undefined where it is not done then, or finds nothing. */
export const closingWithin = (
  steps: number,
  searching: ClosingSearch,
): readonly number[] | undefined => {
  for (let step = 0; step < steps; step++) {
    const { done, value } = searching.next()
    if (done) return value
  }
  searching.return(undefined)
  return undefined
}

interface Bounds {
  /** The maximum length in tokens. */
  limit: number
  /** Tokens that are tried in one state. */
  readonly wide: number
  masks: number
  /** Tries one token in each state, of another kind each time. */
  readonly inTurn: boolean
}

/** A state of the search: tokens that are still to be tried there. */
interface SearchState {
  readonly untried: number[]
}

function* search(from: Matcher, tokens: ClosingTokens, bounds: Bounds): ClosingSearch {
  const matcher = from.clone()
  try {
    if (matcher.isAccepting()) return []
    const way: number[] = []
    const states: SearchState[] = [extend(matcher, tokens, bounds)]
    yield
    while (states.length > 0) {
      const next = bounds.masks > 0 ? states.at(-1)!.untried.shift() : undefined
      if (next === undefined) {
        states.pop()
        if (way.pop() !== undefined) matcher.rollback(1)
      } else if (matcher.consume(next)) {
        way.push(next)
        if (matcher.isAccepting()) return way
        if (way.length < bounds.limit) {
          states.push(extend(matcher, tokens, bounds))
          yield
        } else states.push({ untried: [] })
      }
    }
    return undefined
  } finally {
    matcher.free()
  }
}

/** Finds the forced bytes on a clone, because asking for them advances the matcher. */
const extend = (matcher: Matcher, tokens: ClosingTokens, bounds: Bounds): SearchState => {
  bounds.masks--
  const mask = matcher.mask().slice()
  const clone = matcher.clone()
  const forced = clone.forced()
  clone.free()
  const along = forced.length > 0 ? tokens.along(mask, forced) : undefined
  if (along !== undefined) return { untried: [along] }
  return {
    untried: [
      ...(bounds.inTurn ? tokens.inTurn(mask, bounds.masks) : tokens.promising(mask, bounds.wide)),
    ],
  }
}
