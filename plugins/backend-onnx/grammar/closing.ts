import type { ClosingTokens } from "./closing-tokens.ts"
import type { Matcher } from "./matcher.ts"

/** Masks to find a first end: straight on, with few choices, and with any number. */
const straightMasks = 500
const fewChoices = 8
const masksForFew = 1_500
const masksForMany = 1_000
const mostMasksForMany = 20_000
/** Masks that are spent to find a shorter one: more where the first does not fit. */
const masksToImprove = 1_000
const masksToFit = 6_000
/** Bytes of a completion, for each token that may be written. */
const bytesPerToken = 12

/** A place where there was a choice: ways that were not taken. */
interface Choice {
  /** The number of bytes before it. */
  readonly at: number
  readonly others: number[]
}

interface Limits {
  readonly bytes: number
  /** Places with more than one way. */
  readonly choices: number
}

/** A completion, byte by byte. */
interface Way {
  readonly ids: readonly number[]
  readonly choices: readonly Choice[]
}

/**
 * Returns a completion of at most `most` tokens; undefined: none was found. The first is found by
 * following the most promising bytes, going back from where they lead to no end; where there is none
 * at all that way (`a*b` along `a`), by trying all ways with few choices. From each place where it had a
 * choice all others are followed in the same way, and whatever is shorter takes its place
 * (local search), until nothing gets shorter. What it does is counted, so that a search has a bound
 * and the same document the same completion. It ends where the text may end, even if more could
 * follow. `literals`: bytes at which free text may end.
 */
export const shortestClosing = (
  matcher: Matcher,
  tokens: ClosingTokens,
  most: number,
  literals: readonly number[] = [],
): readonly number[] | undefined => {
  const search = new ClosingSearch(matcher, tokens, literals)
  const found = search.find(most)
  if (!found) return undefined
  const first = tokens.spell(found.ids)
  // far from the end of the budget any completion will do
  if (first.length * 2 <= most) return first
  const masks = first.length <= most ? masksToImprove : masksToFit
  const shortest = tokens.spell(search.improve(found, masks).ids)
  const best = shortest.length < first.length ? shortest : first
  return best.length <= most ? best : undefined
}

class ClosingSearch {
  private readonly tokens: ClosingTokens
  private readonly from: Matcher
  private readonly literals: readonly number[]
  private masks = 0

  constructor(from: Matcher, tokens: ClosingTokens, literals: readonly number[]) {
    this.from = from
    this.tokens = tokens
    this.literals = literals
  }

  find(most: number): Way | undefined {
    const bytes = most * bytesPerToken
    this.masks = straightMasks
    const straight = this.findWithin({ bytes, choices: Number.POSITIVE_INFINITY })
    if (straight) return straight
    this.masks = masksForFew
    for (let choices = 1; choices <= fewChoices && this.masks > 0; choices++) {
      const found = this.findWithin({ bytes, choices })
      if (found) return found
    }
    this.masks = Math.min(mostMasksForMany, masksForMany + most)
    return this.findWithin({ bytes, choices: Number.POSITIVE_INFINITY })
  }

  /** Depth first. */
  private findWithin(limits: Limits): Way | undefined {
    const matcher = this.from.clone()
    const [ids, choices]: [number[], Choice[]] = [[], []]
    try {
      for (;;) {
        if (this.follow(matcher, ids, choices, limits)) return { ids, choices }
        if (!this.goBack(matcher, ids, choices)) return undefined
      }
    } finally {
      matcher.free()
    }
  }

  /** Takes another way at the last choice that has one. */
  private goBack(matcher: Matcher, ids: number[], choices: Choice[]): boolean {
    for (let last = choices.at(-1); last && this.masks > 0; last = choices.at(-1)) {
      matcher.rollback(ids.length - last.at)
      ids.length = last.at
      for (let next = last.others.shift(); next !== undefined; next = last.others.shift())
        if (matcher.consume(next)) {
          ids.push(next)
          return true
        }
      choices.pop()
    }
    return false
  }

  improve(first: Way, masks: number): Way {
    this.masks = masks
    let best = first
    for (let length = -1; length !== best.ids.length && this.masks > 0; ) {
      length = best.ids.length
      best = this.improveOnce(best)
    }
    return best
  }

  /** Follows all other ways at each choice, from the first to the last. */
  private improveOnce(way: Way): Way {
    const matcher = this.from.clone()
    let best = way
    let at = 0
    try {
      for (let index = 0; index < best.choices.length && this.masks > 0; index++) {
        for (const end = best.choices[index]!.at; at < end; at++) matcher.consume(best.ids[at]!)
        best = this.improveAt(matcher, best, index)
      }
    } finally {
      matcher.free()
    }
    return best
  }

  private improveAt(before: Matcher, way: Way, index: number): Way {
    const { at, others } = way.choices[index]!
    let best = way
    for (const other of others) {
      const bytes = best.ids.length - 1
      if (at + 1 > bytes || this.masks <= 0) break
      const matcher = before.clone()
      const ids = [...way.ids.slice(0, at), other]
      const rest = { at, others: others.filter((one) => one !== other) }
      const choices = [...way.choices.slice(0, index), rest]
      const limits = { bytes, choices: Number.POSITIVE_INFINITY }
      try {
        if (matcher.consume(other) && this.follow(matcher, ids, choices, limits))
          best = { ids, choices }
      } finally {
        matcher.free()
      }
    }
    return best
  }

  /** Follows the most promising bytes to an end; false: there is none within the limits. */
  private follow(matcher: Matcher, ids: number[], choices: Choice[], limits: Limits): boolean {
    while (!matcher.isAccepting()) {
      if (ids.length >= limits.bytes || this.masks-- <= 0) return false
      const untried = this.inOrder(matcher, ids.at(-1))
      if (untried.length === 1 && this.takeForced(matcher, ids)) continue
      if (untried.length > 1 && choices.length >= limits.choices) return false
      const taken = untried.findIndex((id) => matcher.consume(id))
      if (taken < 0) return false
      if (untried.length > 1) choices.push({ at: ids.length, others: untried.slice(taken + 1) })
      ids.push(untried[taken]!)
    }
    return true
  }

  /** After a zero that did not end a number, such as in -0.0, another zero won't either. */
  private inOrder(matcher: Matcher, last: number | undefined): readonly number[] {
    const untried = this.tokens.choices(matcher.mask(), this.literals)
    const zero = this.tokens.idOf(0x30)
    const isDigit = (id: number) => /\d/.test(String.fromCharCode(this.tokens.byteOf(id) ?? 0))
    return last === zero && untried[0] === zero && untried.every(isDigit)
      ? [...untried.slice(1), untried[0]!]
      : untried
  }

  /** Takes all bytes that must follow. Asks a clone for them, because that advances the matcher. */
  private takeForced(matcher: Matcher, ids: number[]): boolean {
    const clone = matcher.clone()
    const forced = clone.forced()
    clone.free()
    let isTaken = false
    for (const byte of forced) {
      const id = this.tokens.idOf(byte)
      if (id === undefined || !matcher.consume(id)) break
      ids.push(id)
      isTaken = true
    }
    return isTaken
  }
}
