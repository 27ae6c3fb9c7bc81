import { ageIn, ageOfPersonIn, asideIn } from "./age.ts"
import { allowedIn } from "./allowed.ts"
import type { Term } from "./lists.ts"
import { type Found, type List, Matcher } from "./matcher.ts"

export const categories = ["minors", "public_figures", "nsfw"] as const
export type Category = (typeof categories)[number]

/** The lists, by the names of their files. */
export const listNames = [
  "minors",
  "ages",
  "nsfw",
  "people",
  "gore",
  "public_figures",
  "allowed",
] as const
export type ListName = (typeof listNames)[number]
export type Lists = Readonly<Record<ListName, readonly Term[]>>

/** A sexual word beside one for a child counts from this on, though it may be harmless alone. */
const suggestive = 0.5

/** Lists of words that count in full where somebody hides them: `c0ck` is no rooster. */
const isHidden = (list: ListName): boolean => list === "nsfw" || list === "gore"

interface Scores {
  readonly of: (list: ListName) => number
}

/** The sum of the weights of the different terms found; `people` counts once, as they are many. */
const scoresOf = (
  { hits }: Found<ListName>,
  counts: (from: number, to: number) => boolean,
): Scores => {
  // by their words: lists of two languages share some
  const terms = new Map<ListName, Map<string, number>>()
  for (const { list, term, from, to, disguised } of hits) {
    if (!counts(from, to)) continue
    const weight = disguised && term.weight >= suggestive && isHidden(list) ? 1 : term.weight
    const key = term.words.map(({ word }) => word).join(" ")
    terms.set(list, (terms.get(list) ?? new Map()).set(key, weight))
  }
  return {
    of: (list) => {
      const weights = [...(terms.get(list)?.values() ?? [])]
      return list === "people"
        ? Math.max(0, ...weights)
        : weights.reduce((sum, weight) => sum + weight, 0)
    },
  }
}

const placesOf = (
  { hits }: Found<ListName>,
  wanted: ListName,
  counts: (from: number, to: number) => boolean,
): ReadonlySet<number> => {
  const places = new Set<number>()
  for (const { list, from, to } of hits)
    if (list === wanted && counts(from, to)) for (let at = from; at < to; at++) places.add(at)
  return places
}

// sums of decimals
const reaches = (sum: number, least: number): boolean => sum > least - 1e-9

const isAboutMinors = (scores: Scores, hasAge: boolean): boolean =>
  reaches(scores.of("minors"), 1) ||
  ((hasAge || scores.of("ages") > 0) &&
    reaches(scores.of("nsfw") + scores.of("minors"), suggestive))

const isNsfw = (scores: Scores): boolean => {
  const sexual = scores.of("nsfw")
  return (
    reaches(sexual, 1) ||
    (sexual > 0 && reaches(sexual + scores.of("people"), 1)) ||
    reaches(scores.of("gore"), 1)
  )
}

// the same sign, or a space, between all of them
const spelled =
  /(?<![\p{L}\p{N}])[\p{L}\p{N}](?:([ ._*~-])[\p{L}\p{N}])(?:\1[\p{L}\p{N}])+(?![\p{L}\p{N}])/gu

/** Makes words of what is spelled letter by letter, so that they stand in rows with others. */
const joinSpelled = (prompt: string): string =>
  prompt.replace(spelled, (letters, sign: string) => letters.replaceAll(sign, ""))

export interface PromptFilter {
  /** The categories that a prompt belongs to, the gravest first. */
  categoriesOf(prompt: string): readonly Category[]
}

/**
 * A filter by words and their weights. `allowed` are the terms of the operator: what they cover
 * counts for no category but minors.
 */
export const makePromptFilter = (lists: Lists, allowed: readonly Term[] = []): PromptFilter => {
  const matcher = new Matcher<ListName>(
    listNames
      .filter((name) => name !== "allowed")
      .map(
        (name): List<ListName> => ({
          name,
          terms: lists[name],
          ...(name === "public_figures" ? { kind: "names" } : {}),
        }),
      ),
  )
  const harmless = allowedIn(lists.allowed)
  const allowedByOperator = allowedIn(allowed)
  const asWritten = (prompt: string): readonly Category[] => {
    const found = matcher.find(prompt)
    if (found.hits.length === 0) return []
    const known = harmless(found.tokens)
    const own = allowedByOperator(found.tokens)
    const counts = (from: number, to: number) => !known(from, to)
    const strict = scoresOf(found, counts)
    const scores = scoresOf(found, (from, to) => !known(from, to) && !own(from, to))
    return categories.filter((category) => {
      if (category === "minors") {
        const { tokens } = found
        const people = placesOf(found, "people", counts)
        const places = { people, sexual: placesOf(found, "nsfw", counts) }
        const isOfPerson = (people.size > 0 && asideIn(tokens)) || ageOfPersonIn(tokens, places)
        return isAboutMinors(strict, isOfPerson || ageIn(tokens, places))
      }
      if (category === "nsfw") return isNsfw(scores)
      return reaches(scores.of("public_figures"), 1)
    })
  }
  return {
    categoriesOf: (prompt) => {
      const found = new Set(asWritten(prompt))
      const joined = joinSpelled(prompt)
      if (joined !== prompt) for (const category of asWritten(joined)) found.add(category)
      return categories.filter((category) => found.has(category))
    },
  }
}
