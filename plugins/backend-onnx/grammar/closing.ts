import type { ClosingTokens } from "./closing-tokens.ts"
import type { GrammarInstance, MatcherHandle } from "./grammar-instance.ts"

/** Tokens that are tried at one place, and masks of one search: a search, not an enumeration. */
const widest = 12
const mostMasks = 6_000

/**
 * The shortest way to an end that was found. First straight along the most promising tokens. Where that never ends (`a*b` along `a`), along all kinds of
 * letters in turn, and then depth first with a limit of length that grows. It ends where the text may end, which is not yet where nothing more may follow.
 */
export const closingTokens = (
  instance: GrammarInstance,
  matcher: MatcherHandle,
  tokens: ClosingTokens,
  most: number,
): readonly number[] | undefined => {
  for (const inTurn of [false, true]) {
    const straight = search(instance, matcher, tokens, {
      limit: most,
      wide: 1,
      masks: most + 1,
      inTurn,
    })
    if (straight) return straight
  }
  const bounds = { limit: 1, wide: widest, masks: mostMasks, inTurn: false }
  while (bounds.limit <= most && bounds.masks > 0) {
    const found = search(instance, matcher, tokens, bounds)
    if (found || bounds.limit === most) return found
    bounds.limit = Math.min(most, bounds.limit + (bounds.limit < 8 ? 1 : bounds.limit))
  }
  return undefined
}

interface Bounds {
  /** Tokens. */
  limit: number
  /** Tokens that are tried at one place. */
  readonly wide: number
  masks: number
  /** One token at each place, of another kind each time. */
  readonly inTurn: boolean
}

/** A place on the way: what may still be tried there. */
interface Place {
  readonly untried: number[]
}

const search = (
  instance: GrammarInstance,
  from: MatcherHandle,
  tokens: ClosingTokens,
  bounds: Bounds,
): readonly number[] | undefined => {
  const matcher = instance.clone(from)
  try {
    if (instance.isAccepting(matcher)) return []
    const way: number[] = []
    const places: Place[] = [extend(instance, matcher, tokens, bounds)]
    while (places.length > 0) {
      const next = bounds.masks > 0 ? places.at(-1)!.untried.shift() : undefined
      if (next === undefined) {
        places.pop()
        if (way.pop() !== undefined) instance.rollback(matcher, 1)
      } else if (instance.consume(matcher, next)) {
        way.push(next)
        if (instance.isAccepting(matcher)) return way
        places.push(
          way.length < bounds.limit ? extend(instance, matcher, tokens, bounds) : { untried: [] },
        )
      }
    }
    return undefined
  } finally {
    instance.free(matcher)
  }
}

/** What must come next is read off a clone: to ask commits a matcher. */
const extend = (
  instance: GrammarInstance,
  matcher: MatcherHandle,
  tokens: ClosingTokens,
  bounds: Bounds,
): Place => {
  bounds.masks--
  const mask = instance.mask(matcher).slice()
  const clone = instance.clone(matcher)
  const forced = instance.forced(clone)
  instance.free(clone)
  const along = forced.length > 0 ? tokens.along(mask, forced) : undefined
  if (along !== undefined) return { untried: [along] }
  return {
    untried: [
      ...(bounds.inTurn ? tokens.inTurn(mask, bounds.masks) : tokens.promising(mask, bounds.wide)),
    ],
  }
}
