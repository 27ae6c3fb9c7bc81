import type { Json } from "../../../../../core/json.ts"
import type { SchemaDocument, SchemaLocation } from "../document.ts"
import { isObject, type JsonObject } from "../json-value.ts"
import { acceptsArray } from "./accepts-array.ts"
import { acceptsObject } from "./accepts-object.ts"
import { acceptsNumber, acceptsText, acceptsType, acceptsValues } from "./accepts-scalar.ts"
import { type Check, Evaluated, isRule, type Judging, Run, Undecided } from "./check.ts"

/** About 40 ms at worst; a document of 1,000 values takes a hundredth of it. */
const mostSteps = 300_000
/** The same for all values that are judged while a schema is read. */
const mostStepsOfDocument = 2_000_000
const stepsOfScope = 20

const passes: Check = () => true
const fails: Check = () => false

/** All checks of a document, compiled when they are first needed. */
class Judge implements Judging {
  readonly document: SchemaDocument
  stepsLeft = mostStepsOfDocument
  private readonly checks = new Map<string, Check>()

  constructor(document: SchemaDocument) {
    this.document = document
  }

  check(place: SchemaLocation): Check {
    if (!isObject(place.schema)) return place.schema === false ? fails : passes
    const key = this.document.keyOf(place)
    const known = this.checks.get(key)
    if (known) return known
    // a schema may lead to itself, so its parts are compiled by the first value
    let whole: Check | undefined
    const check: Check = (value, run, seen) => {
      const known = seen ? undefined : run.recall(check, value)
      if (known !== undefined) return known
      run.enter()
      // dynamic scopes multiply the places, and comparing them takes longer than judging
      if (!whole && place.scope) run.spend(stepsOfScope)
      whole ??= this.compile(place, place.schema as JsonObject)
      const isValid = whole(value, run, seen)
      run.leave()
      if (!seen) run.remember(check, value, isValid)
      return isValid
    }
    this.checks.set(key, check)
    return check
  }

  private compile(place: SchemaLocation, schema: JsonObject): Check {
    const parts = [
      acceptsType(schema),
      acceptsValues(schema),
      acceptsNumber(schema),
      acceptsText(schema),
      ...this.references(place),
      ...this.combined(place, schema),
      acceptsArray(this, place, schema),
      acceptsObject(this, place, schema),
    ].filter(isRule)
    const every: Check = (value, run, seen) => {
      for (const part of parts) if (!part(value, run, seen)) return false
      return true
    }
    return this.unevaluated(place, schema, every)
  }

  private references(place: SchemaLocation): readonly Check[] {
    return this.document.references(place).map(({ target }) => {
      if (target) return this.check(target)
      return () => {
        throw new Undecided("a $ref leads out of the document")
      }
    })
  }

  private combined(place: SchemaLocation, schema: JsonObject): readonly Check[] {
    const list = (keyword: string): readonly Check[] | undefined =>
      Array.isArray(schema[keyword])
        ? schema[keyword].map((_, i) => this.check(this.document.at(place, keyword, i)))
        : undefined
    const one = (keyword: string): Check | undefined =>
      Object.hasOwn(schema, keyword) ? this.check(this.document.at(place, keyword)) : undefined
    const [anyOf, oneOf, not] = [list("anyOf"), list("oneOf"), one("not")]
    const [condition, then = passes, otherwise = passes] = [one("if"), one("then"), one("else")]
    return [
      ...(list("allOf") ?? []),
      ...(anyOf ? [any(anyOf)] : []),
      ...(oneOf ? [exactlyOne(oneOf)] : []),
      ...(not ? [((value, run) => !not(value, run)) satisfies Check] : []),
      ...(condition ? [conditional(condition, then, otherwise)] : []),
    ]
  }

  /** Applies `unevaluatedProperties` and `unevaluatedItems`, after everything beside them. */
  private unevaluated(place: SchemaLocation, schema: JsonObject, every: Check): Check {
    const [names, items] = ["unevaluatedProperties", "unevaluatedItems"].map((keyword) =>
      Object.hasOwn(schema, keyword) ? this.check(this.document.at(place, keyword)) : undefined,
    )
    if (!names && !items) return every
    return (value, run, seen) => {
      // what schemas outside of this one evaluate does not count
      const own = new Evaluated()
      if (!every(value, run, own)) return false
      if (Array.isArray(value) && items && !own.restOfItems(value, (item) => items(item, run)))
        return false
      if (isObject(value) && names && !own.restOfNames(value, (part) => names(part, run)))
        return false
      seen?.add(own)
      return true
    }
  }
}

/** Applies a schema whose failure is not the whole's: it evaluates nothing where it fails. */
const tried = (check: Check): Check => {
  return (value, run, seen) => {
    if (!seen) return check(value, run)
    const own = new Evaluated()
    if (!check(value, run, own)) return false
    seen.add(own)
    return true
  }
}

const any = (options: readonly Check[]): Check => {
  const all = options.map(tried)
  return (value, run, seen) =>
    seen
      ? all.filter((option) => option(value, run, seen)).length > 0
      : options.some((option) => option(value, run))
}

const exactlyOne = (options: readonly Check[]): Check => {
  const all = options.map(tried)
  return (value, run, seen) => {
    let count = 0
    for (const option of all) if (option(value, run, seen) && ++count > 1) return false
    return count === 1
  }
}

const conditional = (condition: Check, then: Check, otherwise: Check): Check => {
  const first = tried(condition)
  return (value, run, seen) => (first(value, run, seen) ? then : otherwise)(value, run, seen)
}

const judges = new WeakMap<SchemaDocument, Judge>()

/**
 * Judges a value by a schema, with all keywords of the schema's draft. Undefined: undecided, as a
 * reference leads nowhere, a pattern can't be read, or too much work would be needed: together with
 * that of the document's other values, unless `most` or `run` says how much there may be.
 */
export const judgeValue = (
  document: SchemaDocument,
  place: SchemaLocation,
  value: Json,
  { most, run }: { readonly most?: number; readonly run?: Run } = {},
): boolean | undefined => {
  const judge = judges.get(document) ?? new Judge(document)
  judges.set(document, judge)
  const isShared = most === undefined && !run
  const counted = run ?? new Run(most ?? Math.min(mostSteps, judge.stepsLeft))
  try {
    counted.begin()
    return judge.check(place)(value, counted)
  } catch (cause) {
    // a RangeError is a stack that is too deep
    if (cause instanceof Undecided || cause instanceof RangeError) return undefined
    throw cause
  } finally {
    if (isShared) judge.stepsLeft -= counted.spent
  }
}

/** Whether a value certainly satisfies a schema. */
export const acceptsValue = (
  document: SchemaDocument,
  place: SchemaLocation,
  value: Json,
  run?: Run,
): boolean => judgeValue(document, place, value, run && { run }) === true
