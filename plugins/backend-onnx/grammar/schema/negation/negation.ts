import type { SchemaDocument, SchemaLocation } from "../document.ts"
import { isObject, type JsonObject } from "../json-value.ts"
import { allOf, type EnforcedSchema, type Reading } from "../reading.ts"
import { judgeValue } from "../validator/accepts.ts"
import { ofKinds, union } from "./complements.ts"
import { areDisjoint } from "./disjoint.ts"
import { type Kind, Known, kindsOfType } from "./known.ts"
import { violatedArray } from "./negated-arrays.ts"
import { type Tag, tagOf, violatedObject } from "./negated-objects.ts"
import { violatedNumber, violatedText } from "./negated-scalars.ts"
import { exceptValues, isValued, listed } from "./negated-values.ts"

/** The maximum number of steps of one negation, which is about the size of what is written. */
const mostSteps = 500
const deepest = 40
/** Combinations of two branches of a negated `oneOf` that are written out. */
const mostPairs = 100
const mostBranches = 100

/** What the negations of keywords share. */
export interface Negating {
  readonly reading: Reading
  readonly document: SchemaDocument
  /** The values that do not satisfy a schema. */
  of(place: SchemaLocation, known: Known): EnforcedSchema
  /** Reads a schema that holds. */
  read(place: SchemaLocation): EnforcedSchema
  /** Notes that a schema accepts more than it should. */
  loosely(schema: EnforcedSchema): EnforcedSchema
}

/** The schema of a part, and the keyword that is negated, each an alternative to all others. */
export type Violated = (
  negating: Negating,
  place: SchemaLocation,
  known: Known,
) => readonly EnforcedSchema[]

const ofTypes: Readonly<Partial<Record<Kind, Violated>>> = {
  integer: violatedNumber,
  string: violatedText,
  array: violatedArray,
  object: violatedObject,
}

/**
 * Negates schemas: what is negated is pushed down to types, values, bounds and names. What can't be
 * negated is replaced by more than it should be, and noted.
 */
export class Negation implements Negating {
  readonly reading: Reading
  readonly document: SchemaDocument
  /** Whether nothing was replaced by more than it should be. */
  isExact = true
  private steps = 0

  /** Whether it is not worth to be written. */
  get isTooLarge(): boolean {
    return this.steps > mostSteps || this.reading.negationSteps <= 0
  }

  private readonly open: string[] = []
  /** Targets of references that lead back to themselves, with the names of their negations. */
  private readonly recursive = new Map<string, { readonly name: string; place: SchemaLocation }>()

  constructor(reading: Reading) {
    this.reading = reading
    this.document = reading.document
  }

  /** The values that satisfy none of the schemas, among those of which something is known. */
  whole(places: readonly SchemaLocation[], known: Known): EnforcedSchema {
    const negated = this.noneOf(places, known)
    for (const { name, place: target } of this.recursive.values())
      this.reading.define(name, this.below(target, new Known(this.document, [])))
    return negated
  }

  loosely(schema: EnforcedSchema): EnforcedSchema {
    this.isExact = false
    return schema
  }

  of(place: SchemaLocation, known: Known): EnforcedSchema {
    const { schema } = place
    if (!isObject(schema)) return schema === false ? ofKinds(known.kinds) : false
    if (known.kinds.size === 0) return false
    if (this.isTooLarge || this.open.length > deepest) return this.loosely(ofKinds(known.kinds))
    this.steps++
    this.reading.negationSteps--
    if (isValued(schema)) return exceptValues(this, [place], known)
    const { values } = known
    if (values)
      return listed(values.filter((value) => judgeValue(this.document, place, value) === false))
    return this.exceptKeywords(place, known)
  }

  private exceptKeywords(place: SchemaLocation, known: Known): EnforcedSchema {
    const own = kindsOfType((place.schema as JsonObject).type)
    const others = new Set([...known.kinds].filter((kind) => !own.has(kind)))
    // a grammar does not distinguish numbers with a fraction from whole ones
    const outside = others.has("fraction") && own.has("integer") && known.kinds.has("integer")
    const violated = (Object.keys(ofTypes) as Kind[])
      .filter((kind) =>
        kind === "integer"
          ? ["integer", "fraction"].some(
              (one) => known.kinds.has(one as Kind) && own.has(one as Kind),
            )
          : known.kinds.has(kind) && own.has(kind),
      )
      .flatMap((kind) => ofTypes[kind]!(this, place, known))
    return union([
      outside ? this.loosely(ofKinds(others)) : ofKinds(others),
      ...violated,
      ...this.branches(place, known),
    ])
  }

  private branches(place: SchemaLocation, known: Known): readonly EnforcedSchema[] {
    const schema = place.schema as JsonObject
    const at = (...names: readonly (string | number)[]) => this.document.at(place, ...names)
    const list = (keyword: string) =>
      Array.isArray(schema[keyword]) ? schema[keyword].map((_, i) => at(keyword, i)) : undefined
    const read = (one: SchemaLocation) => this.read(one)
    const options = list("anyOf")
    return [
      ...this.document
        .references(place)
        .map(({ target }) =>
          target ? this.reference(target, known) : this.loosely(ofKinds(known.kinds)),
        ),
      ...(list("allOf") ?? []).map((one) => this.of(one, known)),
      ...(options ? [this.noneOf(options, known)] : []),
      ...this.one(list("oneOf"), known),
      ...(schema.not === undefined ? [] : [read(at("not"))]),
      ...this.conditional(place, known),
    ]
  }

  /** Either no branch holds, or two do. */
  private one(
    options: readonly SchemaLocation[] | undefined,
    known: Known,
  ): readonly EnforcedSchema[] {
    if (!options) return []
    const none = this.noneOf(options, known)
    if (options.length > mostBranches) return [this.loosely(ofKinds(known.kinds))]
    const { disjointSteps } = this.reading
    const pairs = options.flatMap((a, i) =>
      options
        .slice(i + 1)
        .flatMap((b) => (areDisjoint(this.document, a, b, known, disjointSteps) ? [] : [[a, b]])),
    )
    if (pairs.length > mostPairs) return [this.loosely(ofKinds(known.kinds))]
    return [none, ...pairs.map((pair) => allOf(pair.map((one) => this.read(one))))]
  }

  private conditional(place: SchemaLocation, known: Known): readonly EnforcedSchema[] {
    const schema = place.schema as JsonObject
    const at = (keyword: string) => this.document.at(place, keyword)
    if (schema.if === undefined) return []
    const otherwise = schema.else === undefined ? false : this.of(at("else"), known)
    return [
      ...(schema.then === undefined
        ? []
        : [allOf([this.read(at("if")), this.of(at("then"), known.and(at("if")))])]),
      ...(otherwise === false ? [] : [allOf([this.of(at("if"), known), otherwise])]),
    ]
  }

  read(place: SchemaLocation): EnforcedSchema {
    const { enforced, isExact } = this.reading.readAside(place)
    if (!isExact) this.isExact = false
    return enforced
  }

  private reference(target: SchemaLocation, known: Known): EnforcedSchema {
    const key = this.document.keyOf(target)
    if (!this.open.includes(key)) return this.below(target, known)
    const name = this.recursive.get(key)?.name ?? this.reading.newName()
    this.recursive.set(key, { name, place: target })
    return { $ref: `#/$defs/${name}` }
  }

  private below(target: SchemaLocation, known: Known): EnforcedSchema {
    this.open.push(this.document.keyOf(target))
    const negated = this.of(target, known)
    this.open.pop()
    return negated
  }

  /**
   * Negates several schemas at once: values that are excluded one after another would multiply the
   * alternatives, so those of one place, or of one property, are excluded together.
   */
  private noneOf(places: readonly SchemaLocation[], known: Known): EnforcedSchema {
    const rest: EnforcedSchema[] = []
    const valued: SchemaLocation[] = []
    const tags = new Map<string, Tag[]>()
    for (const place of places) {
      const tag = tagOf(this.document, place)
      if (isValued(place.schema)) valued.push(place)
      else if (tag) tags.set(tag.key, [...(tags.get(tag.key) ?? []), tag])
      else rest.push(this.of(place, known))
    }
    if (valued.length > 0) rest.push(exceptValues(this, valued, known))
    for (const [first, ...others] of tags.values()) rest.push(this.tagged(first!, others, known))
    return allOf(rest)
  }

  private tagged(first: Tag, others: readonly Tag[], known: Known): EnforcedSchema {
    if (others.length === 0) return this.of(first.place, known)
    const { name, isRequired, isTyped } = first
    const besides = new Set([...known.kinds].filter((kind) => kind !== "object"))
    if (known.names && !known.names.has(name))
      return isRequired ? ofKinds(isTyped ? known.kinds : new Set(["object"])) : ofKinds(besides)
    const rules = [first, ...others].map(({ rule }) => rule)
    const broken = this.noneOf(rules, known.property(name))
    return union([
      isTyped ? ofKinds(besides) : false,
      {
        type: "object",
        properties: { [name]: broken },
        ...(!isRequired && { required: [name] }),
      },
    ])
  }
}
