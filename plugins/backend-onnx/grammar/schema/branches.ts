import type { Json } from "../../../../core/json.ts"
import type { SchemaLocation } from "./document.ts"
import { isObject } from "./json-value.ts"
import { restricted } from "./negation/complements.ts"
import { conditions } from "./negation/conditions.ts"
import { areDisjoint } from "./negation/disjoint.ts"
import { Known } from "./negation/known.ts"
import { Negation } from "./negation/negation.ts"
import { allOf, anyOf, type EnforcedSchema, type Keywords, type Reading } from "./reading.ts"
import { alternativesOf } from "./ways.ts"

const isList = (value: Json): value is readonly Json[] => Array.isArray(value) && value.length > 0

/** The maximum number of branches that are compared pairwise. */
const mostCompared = 200

/** Reads the keywords that combine schemas, except `$ref`. */
export const branches = (
  of: Keywords,
  reading: Reading,
  isWithoutConditions: boolean,
): readonly EnforcedSchema[] => [
  ...all(of, reading),
  any(of),
  one(of, reading),
  not(of, reading),
  ...conditions(of, reading, isWithoutConditions),
]

/** The conditions of the members are read with those of the schema itself. */
const all = (of: Keywords, reading: Reading): readonly EnforcedSchema[] => {
  const parts = of.value("allOf", isList, "a list of schemas")
  if (parts) of.enforce("allOf")
  return (parts ?? []).map((part, i) =>
    isObject(part) && part.if !== undefined
      ? reading.read(of.inside("allOf", i), true)
      : of.read("allOf", i),
  )
}

const any = (of: Keywords): EnforcedSchema => {
  const options = of.value("anyOf", isList, "a list of schemas")
  if (!options) return true
  of.enforce("anyOf")
  return anyOf(options.map((_, i) => of.read("anyOf", i)))
}

/**
 * Reads `oneOf` as `anyOf`, where each branch that another may hold beside goes with the negation of
 * that other.
 */
const one = (of: Keywords, reading: Reading): EnforcedSchema => {
  const options = of.value("oneOf", isList, "a list of schemas")
  if (!options) return true
  const places = options.map((_, i) => of.inside("oneOf", i))
  const known = new Known(reading.document, [of.place])
  const read = places.map((_, i) => of.read("oneOf", i))
  const exclusive = exclusively(reading, places, read, known)
  if (exclusive?.isExact) of.enforce("oneOf")
  else of.guard("oneOf")
  return exclusive ? exclusive.enforced : anyOf(read)
}

const exclusively = (
  reading: Reading,
  places: readonly SchemaLocation[],
  read: readonly EnforcedSchema[],
  known: Known,
): { readonly enforced: EnforcedSchema; readonly isExact: boolean } | undefined => {
  if (places.length > mostCompared) return undefined
  const negation = new Negation(reading)
  const besides = overlapping(reading, places, known)
  let ways = 0
  const options: EnforcedSchema[] = []
  for (const [i, place] of places.entries()) {
    const others = besides[i]!.map((j) => places[j]!)
    if (others.length > 0 && reading.options.mostWays === 0) return undefined
    const beside = known.and(place)
    const parts = [
      restricted(read[i]!, known.kinds),
      ...(others.length > 0 ? [negation.whole(others, beside)] : []),
    ]
    const option = allOf(parts)
    if (others.length > 0) ways += alternativesOf(option)
    if (ways > reading.options.mostWays || negation.isTooLarge) return undefined
    options.push(option)
  }
  return { enforced: anyOf(options), isExact: negation.isExact }
}

/** For each branch, those that may hold beside it. */
const overlapping = (
  reading: Reading,
  places: readonly SchemaLocation[],
  known: Known,
): readonly (readonly number[])[] => {
  const besides = places.map((): number[] => [])
  for (const [a, place] of places.entries())
    for (const [b, other] of places.entries())
      if (a < b && !areDisjoint(reading.document, place, other, known, reading.disjointSteps)) {
        besides[a]!.push(b)
        besides[b]!.push(a)
      }
  return besides
}

const not = (of: Keywords, reading: Reading): EnforcedSchema => {
  if (!of.has("not")) return true
  // what is no schema is found by reading it
  reading.readAside(of.inside("not"), true)
  const negation = new Negation(reading)
  const negated = negation.whole([of.inside("not")], new Known(reading.document, [of.place]))
  const isWritten = !negation.isTooLarge && alternativesOf(negated) <= reading.options.mostWays
  if (isWritten && negation.isExact) of.enforce("not")
  else of.guard("not")
  return isWritten ? negated : true
}
