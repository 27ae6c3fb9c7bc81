import type { SchemaLocation } from "../document.ts"
import { isObject } from "../json-value.ts"
import { allOf, anyOf, type EnforcedSchema, Keywords, type Reading } from "../reading.ts"
import { alternativesOf } from "../ways.ts"
import { restricted, union } from "./complements.ts"
import { areDisjoint } from "./disjoint.ts"
import { Known } from "./known.ts"
import { Negation } from "./negation.ts"

interface Condition {
  readonly of: Keywords
  readonly isExact: boolean
  readonly place: SchemaLocation
  /** The schema of `if`. */
  readonly holds: EnforcedSchema
  readonly follows: EnforcedSchema
  readonly otherwise: EnforcedSchema
}

/**
 * Reads `if`, `then` and `else` of a schema and of the members of its `allOf`: either the condition
 * and what follows from it, or its negation and what follows from that. Conditions of which no two
 * hold at once are cases of one choice.
 */
export const conditions = (
  of: Keywords,
  reading: Reading,
  isWithoutOwn: boolean,
): readonly EnforcedSchema[] => {
  const members = Array.isArray(of.schema.allOf) ? of.schema.allOf : []
  const holders = [
    ...(isWithoutOwn ? [] : [of]),
    ...members.flatMap((member, i) =>
      isObject(member) && member.if !== undefined
        ? [new Keywords(reading, of.inside("allOf", i))]
        : [],
    ),
  ].filter(isCondition)
  if (holders.length === 0) return []
  const known = new Known(reading.document, [of.place])
  const found = holders.map((holder) => conditionOf(holder, reading, known))
  let ways = 1
  return inCases(found, reading, known).map((cases) => {
    const negation = new Negation(reading)
    const places = cases.map(({ place }) => place)
    const written = anyOf(casesOf(cases, negation.whole(places, known)))
    const isWritten =
      !negation.isTooLarge && ways * alternativesOf(written) <= reading.options.mostWays
    if (isWritten) ways *= alternativesOf(written)
    for (const one of cases)
      for (const keyword of ["if", "then", "else"].filter((name) => one.of.has(name)))
        if (isWritten && one.isExact && negation.isExact) one.of.enforce(keyword)
        else one.of.guard(keyword)
    return isWritten ? written : allOf(cases.map((one) => union([one.follows, one.otherwise])))
  })
}

const isCondition = (of: Keywords): boolean => {
  const rest = ["then", "else"].filter((keyword) => of.has(keyword))
  if (!of.has("if")) for (const keyword of rest) of.note(keyword, "means nothing without if")
  else if (rest.length === 0) of.note("if", "means nothing without then or else")
  return of.has("if") && rest.length > 0
}

const conditionOf = (of: Keywords, reading: Reading, known: Known): Condition => {
  const place = of.inside("if")
  const aside = reading.readAside(place, true)
  return {
    of,
    place,
    isExact: aside.isExact,
    holds: restricted(aside.enforced, known.kinds),
    follows: of.has("then") ? restricted(of.read("then"), known.kinds) : true,
    otherwise: of.has("else") ? restricted(of.read("else"), known.kinds) : true,
  }
}

/** Groups conditions of which no two hold at once. */
const inCases = (
  conditions: readonly Condition[],
  reading: Reading,
  known: Known,
): readonly (readonly Condition[])[] => {
  const groups: Condition[][] = []
  for (const one of conditions) {
    const group = groups.find((others) =>
      others.every((other) =>
        areDisjoint(reading.document, other.place, one.place, known, reading.disjointSteps),
      ),
    )
    if (group) group.push(one)
    else groups.push([one])
  }
  return groups
}

const casesOf = (
  cases: readonly Condition[],
  allFail: EnforcedSchema,
): readonly EnforcedSchema[] => [
  ...cases.map((one) =>
    allOf([
      one.holds,
      one.follows,
      ...cases.filter((other) => other !== one).map((other) => other.otherwise),
    ]),
  ),
  allOf([allFail, ...cases.map((one) => one.otherwise)]),
]
