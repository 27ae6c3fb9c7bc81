import type { Json } from "../../../../core/json.ts"
import { decimalOf, textOf } from "../schema/decimal.ts"
import type { SchemaLocation } from "../schema/document.ts"
import { fewValues } from "../schema/few-values.ts"
import { type Guards, type Subschema, subschemas } from "../schema/guards.ts"
import { canonicalText } from "../schema/json-value.ts"
import { acceptsValue } from "../schema/validator/accepts.ts"
import { type Memory, Run } from "../schema/validator/check.ts"

/** Keywords whose schemas always govern a value, or its items and properties. */
export const sameValue = new Set(["$ref", "$dynamicRef", "$recursiveRef", "allOf"])
const unconditional = new Set([
  ...[...sameValue, "properties", "patternProperties", "additionalProperties"],
  ...["items", "prefixItems", "additionalItems"],
])

const none: ReadonlySet<string> = new Set()

/**
 * The work of all judgements of a mask: about 13 ms. A document of 32,000 tokens takes less, and
 * what was found out of its parts is there for the next mask.
 */
const mostStepsOfMask = 100_000
/** The maximum number of places that differ only in their dynamic scope, as these multiply. */
const mostScoped = 2_000

interface FewValue {
  /** As JSON, one character per byte. */
  readonly text: string
  /** Equal for equal values. */
  readonly key: string
}

/** Returns a scalar as the grammar writes it: numbers without an exponent. */
const writtenText = (value: Json): string => {
  const text = JSON.stringify(value)
  return typeof value === "number" && text.includes("e") ? textOf(decimalOf(value)) : text
}

/** The schemas of a document that take part in checks on finished values. */
export class GuardedSchemas {
  readonly guards: Guards
  /** What is known of parts of the document. */
  private readonly memory: Memory = new WeakMap()
  private run = new Run(mostStepsOfMask, this.memory)
  /** Paths of schemas with a guard in themselves or anywhere below. */
  private readonly reaching: ReadonlySet<string>
  /** Paths of schemas that the enforced schema leaves out altogether. */
  private readonly unenforced: ReadonlySet<string>
  /** There are more places than are looked at: values are judged at all of them. */
  isBeyond = false
  private readonly inside = new Map<string, readonly Subschema[]>()
  private readonly few = new Map<string, { readonly values: readonly FewValue[] | undefined }>()

  constructor(guards: Guards) {
    this.guards = guards
    const all = this.below([guards.document.root])
    this.reaching = this.above(all)
    const loose = [...all.values()].flatMap((place) =>
      this.subschemasOf(place)
        .filter(({ keyword }) => unconditional.has(keyword) && this.guardedIn(place).has(keyword))
        .map((sub) => sub.place),
    )
    this.unenforced = new Set(this.below(loose).keys())
  }

  accepts(place: SchemaLocation, value: Json): boolean {
    return acceptsValue(this.guards.document, place, value, this.run)
  }

  /** Another mask begins: what it may cost is bounded, and what is beyond is not accepted. */
  renew(): void {
    this.run = new Run(mostStepsOfMask, this.memory)
  }

  /** The values of a schema that has only a few, in the order of their texts. */
  fewAt(place: SchemaLocation): readonly FewValue[] | undefined {
    const name = this.guards.document.keyOf(place)
    const known = this.few.get(name)
    if (known) return known.values
    const values = fewValues(this.guards.document, place)?.map((value) => ({
      text: Buffer.from(writtenText(value)).toString("latin1"),
      key: canonicalText(value),
    }))
    values?.sort((a, b) => (a.text < b.text ? -1 : 1))
    this.few.set(name, { values })
    return values
  }

  /** Whether values are to be checked at the place, or below it. */
  matters(place: SchemaLocation): boolean {
    const key = this.guards.document.keyOf(place)
    return this.isBeyond || this.reaching.has(key) || this.unenforced.has(key)
  }

  /** The guarded keywords of one schema. */
  guardedIn({ path }: SchemaLocation): ReadonlySet<string> {
    return this.guards.keywords.get(path) ?? none
  }

  /**
   * Whether values are judged at the place itself: it holds a guarded keyword, or one lies below a
   * keyword that may or may not apply.
   */
  judges(place: SchemaLocation): boolean {
    return (
      this.isBeyond ||
      this.unenforced.has(this.guards.document.keyOf(place)) ||
      this.guardedIn(place).size > 0 ||
      this.subschemasOf(place).some(
        (sub) => !unconditional.has(sub.keyword) && this.matters(sub.place),
      )
    )
  }

  subschemasOf(place: SchemaLocation): readonly Subschema[] {
    const key = this.guards.document.keyOf(place)
    const known = this.inside.get(key)
    if (known) return known
    const fresh = subschemas(this.guards.document, place)
    this.inside.set(key, fresh)
    return fresh
  }

  private below(places: readonly SchemaLocation[]): ReadonlyMap<string, SchemaLocation> {
    const { document } = this.guards
    const found = new Map(places.map((place) => [document.keyOf(place), place]))
    const paths = new Set(places.map(({ path }) => path))
    // the map grows while it is walked
    for (const place of found.values()) {
      this.isBeyond ||= found.size - paths.size > mostScoped
      if (this.isBeyond) break
      for (const sub of this.subschemasOf(place)) {
        const key = document.keyOf(sub.place)
        if (!found.has(key)) found.set(key, sub.place)
        paths.add(sub.place.path)
      }
    }
    return found
  }

  /** Returns the keys of all schemas from which a guarded one is reached. */
  private above(all: ReadonlyMap<string, SchemaLocation>): ReadonlySet<string> {
    const holders = new Map<string, string[]>()
    for (const [key, place] of all)
      for (const sub of this.subschemasOf(place)) {
        const inner = this.guards.document.keyOf(sub.place)
        const known = holders.get(inner)
        if (known) known.push(key)
        else holders.set(inner, [key])
      }
    const guarded = [...all].filter(([, place]) => this.guardedIn(place).size > 0)
    const found = new Set(guarded.map(([key]) => key))
    for (const key of found) for (const holder of holders.get(key) ?? []) found.add(holder)
    return found
  }
}
