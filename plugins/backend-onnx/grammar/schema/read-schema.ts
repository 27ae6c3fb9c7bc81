import type { Json } from "../../../../core/json.ts"
import type { KeywordVerdict } from "../../../../core/ports/schema-checker.ts"
import { acceptsValue } from "./accepts.ts"
import { readArray } from "./arrays.ts"
import { branches } from "./branches.ts"
import { type Reference, SchemaDocument, type SchemaLocation } from "./document.ts"
import { type Guards, unjudgeable } from "./guards.ts"
import { isObject, isTexts, type JsonType, typesOfJson } from "./json-value.ts"
import { handled, keywordsOf } from "./known-keywords.ts"
import { readNumber } from "./numbers.ts"
import { readObject } from "./objects.ts"
import { child } from "./pointer.ts"
import { withoutDeadEnds } from "./productive.ts"
import {
  allOf,
  anyOf,
  type EnforcedSchema,
  Keywords,
  type Reading,
  SchemaInvalid,
} from "./reading.ts"
import { endlessPart, mostDocumentBytes } from "./smallest.ts"
import { readText } from "./texts.ts"

/**
 * The maximum number of subschemas; larger schemas are not written by people, and nobody waits for
 * their compilation.
 */
const mostSchemas = 20_000
const deepest = 200

export interface ReadSchema {
  readonly verdicts: readonly KeywordVerdict[]
  /** The enforced schema for llguidance; false: no document satisfies it. */
  readonly enforced: EnforcedSchema
  /** What is checked beside it on finished values. Absent: the enforced schema is all. */
  readonly guards?: Guards
  readonly texts: readonly TextPlace[]
}

/** A text whose states are worth a trial of their own. */
export interface TextPlace {
  /** The schema that says it. */
  readonly path: string
  readonly keyword: string
  readonly schema: EnforcedSchema
}

/** Throws `SchemaInvalid`. */
export const readSchema = (schema: Json): ReadSchema => new Reader(schema).whole()

class Reader implements Reading {
  readonly document: SchemaDocument
  private readonly verdicts = new Map<string, KeywordVerdict>()
  /** Targets of `$ref`, with their names in `$defs`. */
  private readonly definitions = new Map<
    string,
    { readonly name: string; readonly place: SchemaLocation }
  >()
  private readonly guarded = new Map<string, Set<string>>()
  private readonly texts: TextPlace[] = []
  private readonly pathOf = new Map<EnforcedSchema, string>()
  private schemas = 0
  private depth = 0

  constructor(schema: Json) {
    this.document = new SchemaDocument(schema)
  }

  whole(): ReadSchema {
    const root = this.read(this.document.root)
    const defs = new Map<string, EnforcedSchema>()
    // reading a definition may find more of them
    for (const { name, place } of this.definitions.values()) defs.set(name, this.read(place))
    this.refuseEndless(root, defs)
    return {
      verdicts: [...this.verdicts.values()],
      enforced: withoutDeadEnds(root, defs),
      texts: this.texts,
      ...(this.guarded.size > 0 && { guards: { document: this.document, keywords: this.guarded } }),
    }
  }

  private refuseEndless(root: EnforcedSchema, defs: ReadonlyMap<string, EnforcedSchema>): void {
    const endless = endlessPart(root, defs)
    if (!endless) return
    const path = endless.way.map((schema) => this.pathOf.get(schema)).findLast((known) => known)
    const reason = `every document has more than ${mostDocumentBytes} bytes`
    this.say({ ...this.document.root, path: path ?? "" }, endless.keyword, "refused", reason)
  }

  say(
    place: SchemaLocation,
    keyword: string,
    verdict: KeywordVerdict["verdict"],
    reason?: string,
  ): void {
    const path = child(place.path, keyword)
    // a meta-schema is not part of the caller's schema
    if (!/^($|\/)/.test(place.path) && verdict !== "refused") return
    // a schema may be read twice, for two types or from two references: the worst verdict counts
    const known = this.verdicts.get(path)
    if (known?.verdict === "refused" || (known?.verdict === "enforced" && verdict === "annotation"))
      return
    // how it is enforced is known from the reading that said so
    const why = reason ?? (known?.verdict === verdict ? known.reason : undefined)
    this.verdicts.set(path, { path, keyword, verdict, ...(why !== undefined && { reason: why }) })
  }

  guard(place: SchemaLocation, keyword: string, reason: string): void {
    const obstacle = unjudgeable(this.document, place, keyword)
    if (obstacle !== undefined) {
      this.say(place, keyword, "refused", obstacle)
      return
    }
    const known = this.guarded.get(place.path)
    if (known) known.add(keyword)
    else this.guarded.set(place.path, new Set([keyword]))
    this.say(place, keyword, "enforced", reason)
  }

  read(place: SchemaLocation): EnforcedSchema {
    const { schema } = place
    if (typeof schema === "boolean") return schema
    if (!isObject(schema))
      throw new SchemaInvalid(place.path, "a schema is an object, true or false")
    this.schemas++
    this.depth++
    if (this.schemas > mostSchemas)
      throw new SchemaInvalid(place.path, `the schema holds more than ${mostSchemas} schemas`)
    if (this.depth > deepest)
      throw new SchemaInvalid(place.path, `the schema is nested deeper than ${deepest}`)
    for (const keyword of namingKeywords)
      if (namesOf(schema[keyword]).some((name) => /\p{Cs}/u.test(name)))
        throw new SchemaInvalid(child(place.path, keyword), "a name holds half a surrogate pair")
    const enforced = this.readObject(new Keywords(this, place))
    this.depth--
    if (!this.pathOf.has(enforced)) this.pathOf.set(enforced, place.path)
    return enforced
  }

  private readObject(of: Keywords): EnforcedSchema {
    for (const keyword of Object.keys(of.schema)) if (!handled.has(keyword)) of.note(keyword)
    for (const keyword of this.document.ignoredIn(of.place))
      of.note(keyword, "means nothing beside $ref before draft 2019-09")
    return allOf(
      this.byValue(of) ?? [this.byType(of), ...this.references(of), ...branches(of, this)],
    )
  }

  /**
   * Reads `enum` and `const` as the values that satisfy all other keywords, which then need no
   * constraint of their own.
   */
  private byValue(of: Keywords): readonly EnforcedSchema[] | undefined {
    if (!of.has("enum") && !of.has("const")) return undefined
    const listed = of.value("enum", Array.isArray, "a list") as readonly Json[] | undefined
    const values = of.has("const") ? [of.schema.const] : listed!
    const fitting = values.filter((value) => acceptsValue(this.document, of.place, value))
    for (const keyword of Object.keys(of.schema)) if (handled.has(keyword)) of.enforce(keyword)
    for (const { keyword, ref, target } of this.document.references(of.place))
      if (!target) of.refuse(keyword, `${JSON.stringify(ref)} is not in this document`)
    return [
      fitting.length === 0
        ? false
        : {
            enum: [
              ...new Map(
                fitting.filter(isWritable).map((value) => [JSON.stringify(value), value]),
              ).values(),
            ],
          },
    ]
  }

  private byType(of: Keywords): EnforcedSchema {
    const types = this.typesOf(of)
    const said = typesOfJson.filter(
      (type) =>
        keywordsOf[type].some((keyword) => of.has(keyword)) ||
        (of.has("format") && type === "string"),
    )
    if (!types && said.length === 0) return true
    const wanted = types ?? ["null", "boolean", "number", "string", "array", "object"]
    for (const type of said)
      if (!wanted.some((one) => one === type || (one === "integer" && type === "number")))
        this.idle(of, type)
    return anyOf(wanted.map((type) => this.ofType(of, type)))
  }

  private idle(of: Keywords, type: JsonType): void {
    const keywords = type === "string" ? [...keywordsOf.string, "format"] : keywordsOf[type]
    for (const keyword of keywords)
      if (of.has(keyword)) of.note(keyword, `means nothing for this type`)
  }

  private typesOf(of: Keywords): readonly string[] | undefined {
    if (!of.has("type")) return undefined
    const given = of.schema.type
    const types = typeof given === "string" ? [given] : given
    const unknown = isTexts(types)
      ? types.find(
          (type) => type !== "integer" && !(typesOfJson as readonly string[]).includes(type),
        )
      : ""
    if (!isTexts(types) || unknown !== undefined)
      throw new SchemaInvalid(
        child(of.place.path, "type"),
        unknown ? `type "${unknown}" does not exist` : "type must be a type or a list of types",
      )
    of.enforce("type")
    return types.includes("number") ? types.filter((type) => type !== "integer") : types
  }

  private ofType(of: Keywords, type: string): EnforcedSchema {
    if (type === "number" || type === "integer") return readNumber(of, type === "integer")
    if (type === "string") return this.text(of)
    if (type === "array") return readArray(of, this)
    return type === "object" ? readObject(of, this) : { type }
  }

  private text(of: Keywords): EnforcedSchema {
    const schema = readText(of)
    const keyword = ["pattern", "format", "minLength", "maxLength"].find((one) => of.has(one))
    if (keyword !== undefined) this.texts.push({ path: of.place.path, keyword, schema })
    return schema
  }

  private references(of: Keywords): readonly EnforcedSchema[] {
    for (const keyword of ["$ref", "$dynamicRef", "$recursiveRef"])
      of.value(keyword, (value): value is string => typeof value === "string", "a string")
    return this.document
      .references(of.place)
      .map(({ keyword, ref, target }) => this.reference(of, { keyword, ref, target }))
  }

  private reference(of: Keywords, { keyword, ref, target }: Reference): EnforcedSchema {
    if (!target || !(isObject(target.schema) || typeof target.schema === "boolean")) {
      of.refuse(keyword, `${JSON.stringify(ref)} is not in this document`)
      return true
    }
    of.enforce(keyword)
    const key = this.document.keyOf(target)
    const known = this.definitions.get(key) ?? {
      name: `d${this.definitions.size}`,
      place: target,
    }
    this.definitions.set(key, known)
    return { $ref: `#/$defs/${known.name}` }
  }
}

/** Keywords that hold names of properties, as a list or as keys. */
const namingKeywords = ["properties", "required", "dependentRequired", "dependentSchemas"]
const namesOf = (value: Json): readonly string[] =>
  isTexts(value) ? value : isObject(value) ? Object.keys(value) : []

const isUnwritten = (char: string): boolean =>
  char === "\x7f" || (char < " " && !"\b\t\n\f\r".includes(char))

/**
 * Whether the grammar can write the value: control characters without a short escape are never
 * written, nor lone surrogates.
 */
const isWritable = (value: Json): boolean => {
  if (typeof value === "string") return !/\p{Cs}/u.test(value) && ![...value].some(isUnwritten)
  if (Array.isArray(value)) return value.every(isWritable)
  return (
    !isObject(value) ||
    Object.entries(value).every(([name, part]) => isWritable(name) && isWritable(part))
  )
}
