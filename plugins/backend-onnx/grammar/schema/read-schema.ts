import type { Json } from "../../../../core/json.ts"
import type { KeywordVerdict } from "../../../../core/ports/schema-checker.ts"
import { readArray } from "./arrays.ts"
import { branches } from "./branches.ts"
import { Aside, type Definition, Definitions, Verdicts } from "./definitions.ts"
import { type Reference, SchemaDocument, type SchemaLocation } from "./document.ts"
import { type Guards, obstacleIn, unjudgeable } from "./guards.ts"
import { isObject, isTexts, type JsonType, typesOfJson } from "./json-value.ts"
import { combining, handled, keywordsOf, namesIn, namingKeywords } from "./known-keywords.ts"
import { readNumber } from "./numbers.ts"
import { readObject } from "./objects.ts"
import { child } from "./pointer.ts"
import { withoutDeadEnds } from "./productive.ts"
import {
  allOf,
  anyOf,
  type EnforcedSchema,
  Keywords,
  type ReadAside,
  type Reading,
  type ReadingOptions,
  SchemaInvalid,
} from "./reading.ts"
import { endlessPart, mostDocumentBytes } from "./smallest.ts"
import { readText } from "./texts.ts"
import { readValues } from "./values.ts"

/**
 * The maximum number of subschemas; larger schemas are not written by people, and nobody waits for
 * their compilation.
 */
const mostSchemas = 20_000
const deepest = 200
/** The maximum number of subschemas that are read aside: what is beyond is left to guards. */
const mostAside = 50_000
const deepestAside = 6
const namesOfTypes: ReadonlySet<string> = new Set([...typesOfJson, "integer"])

export interface ReadSchema {
  readonly verdicts: readonly KeywordVerdict[]
  /** The enforced schema for llguidance; false: no document satisfies it. */
  readonly enforced: EnforcedSchema
  /** What is checked beside it on finished values. Absent: the enforced schema is all. */
  readonly guards?: Guards
  readonly texts: readonly TextPlace[]
  /** The way in which it was read. */
  readonly way: number
}

/** A text whose states are worth a trial of their own. */
export interface TextPlace {
  /** The schema that says it. */
  readonly path: string
  readonly keyword: string
  readonly schema: EnforcedSchema
}

export class Reader implements Reading {
  readonly document: SchemaDocument
  readonly options: ReadingOptions
  private readonly verdicts = new Verdicts()
  private readonly definitions = new Definitions()
  private readonly guarded = new Map<string, Set<string>>()
  private readonly texts: TextPlace[] = []
  private readonly pathOf = new Map<EnforcedSchema, string>()
  /** What is read aside at the moment. */
  private aside: Aside | undefined
  private isJudgeable: boolean | undefined
  private asides = 0
  private readAsides = 0
  negationSteps = 3_000
  readonly disjointSteps = { left: 30_000 }
  private schemas = 0
  private depth = 0

  constructor(schema: Json, options: ReadingOptions) {
    this.document = new SchemaDocument(schema)
    this.options = options
  }

  whole(): Omit<ReadSchema, "way"> {
    const root = this.read(this.document.root)
    const defs = this.definitions.readAll(
      (place) => this.read(place),
      (target) => this.targetAside(target).enforced,
    )
    this.refuseEndless(root, defs)
    return {
      verdicts: this.verdicts.all(),
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
    this.record({ path, keyword, verdict, ...(reason !== undefined && { reason }) })
  }

  private record(verdict: KeywordVerdict): void {
    if (this.aside) this.aside.add(verdict)
    else this.verdicts.record(verdict)
  }

  guard(place: SchemaLocation, keyword: string, reason: string): void {
    // most documents have no obstacle anywhere
    this.isJudgeable ??= obstacleIn(this.document, [this.document.root]) === undefined
    const obstacle = this.isJudgeable ? undefined : unjudgeable(this.document, place, keyword)
    if (obstacle !== undefined) {
      this.say(place, keyword, "refused", obstacle)
      return
    }
    const known = this.guarded.get(place.path) ?? new Set()
    if (this.aside) this.aside.isExact = false
    else this.guarded.set(place.path, known.add(keyword))
    this.say(place, keyword, "enforced", reason)
  }

  readAside(place: SchemaLocation, isReported = false): ReadAside {
    const aside = this.readApart(place)
    if (isReported) for (const verdict of aside.kept()) this.record(verdict)
    const isExact = aside.isExact && this.areExact(aside.targets)
    return { enforced: aside.enforced, isExact }
  }

  private readApart(place: SchemaLocation): Aside {
    const [outer, schemas, aside] = [this.aside, this.schemas, new Aside()]
    if (this.readAsides > mostAside || this.asides >= deepestAside) return aside
    this.aside = aside
    this.asides++
    aside.isExact = true
    aside.enforced = this.read(place)
    this.asides--
    this.aside = outer
    this.readAsides += this.schemas - schemas
    this.schemas = schemas
    return aside
  }

  /** The generator goes on to what a target leads to after that has been read. */
  private areExact(targets: ReadonlySet<string>): boolean {
    for (const target of this.definitions.reachedFrom(targets))
      if (!this.targetAside(target).isExact) return false
    return true
  }

  private targetAside(target: Definition): Aside {
    if (!target.aside && this.asides < deepestAside) {
      // a negation of what leads back to itself is not known to be exact
      target.aside = new Aside()
      target.aside = this.readApart(target.place)
    }
    return target.aside ?? new Aside()
  }

  define(name: string, schema: EnforcedSchema): void {
    this.definitions.made.set(name, schema)
  }

  readonly newName = (): string => this.definitions.newName()

  read(place: SchemaLocation, isWithoutConditions = false): EnforcedSchema {
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
      if (namesIn(schema[keyword]).some((name) => /\p{Cs}/u.test(name)))
        throw new SchemaInvalid(child(place.path, keyword), "a name holds half a surrogate pair")
    const enforced = this.readObject(new Keywords(this, place), isWithoutConditions)
    this.depth--
    if (!this.pathOf.has(enforced)) this.pathOf.set(enforced, place.path)
    return enforced
  }

  private readObject(of: Keywords, isWithoutConditions: boolean): EnforcedSchema {
    for (const keyword of Object.keys(of.schema)) if (!handled.has(keyword)) of.note(keyword)
    for (const keyword of this.document.ignoredIn(of.place))
      of.note(keyword, "means nothing beside $ref before draft 2019-09")
    const listed = readValues(of, this.document)
    if (listed) return allOf(listed)
    if (!this.options.isMerging && combining.some((keyword) => of.has(keyword)))
      return this.singlePart(of)
    return allOf([
      this.byType(of),
      ...this.references(of),
      ...branches(of, this, isWithoutConditions),
    ])
  }

  /** Reads the keywords of one part, and leaves all others to guards: nothing is merged. */
  private singlePart(of: Keywords): EnforcedSchema {
    const isPlain = Object.values(keywordsOf).some((all) => all.some((one) => of.has(one)))
    const kept = isPlain ? undefined : combining.find((one) => of.has(one))
    const others = [...combining, "not", "if", "then", "else", ...(kept ? ["type"] : [])]
    for (const keyword of others) if (of.has(keyword) && keyword !== kept) of.guard(keyword)
    if (kept === undefined) return this.byType(of)
    if (kept.endsWith("Ref") || kept === "$ref") return this.references(of)[0]!
    const { isChoosing } = this.options
    if (kept !== "anyOf" || !isChoosing) of.guard(kept)
    if (kept === "allOf") return of.read(kept, 0)
    return (
      !isChoosing || anyOf((of.schema[kept] as readonly Json[]).map((_, i) => of.read(kept, i)))
    )
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
    const path = child(of.place.path, "type")
    if (!isTexts(types)) throw new SchemaInvalid(path, "type must be a type or a list of types")
    const unknown = types.find((type) => !namesOfTypes.has(type))
    if (unknown !== undefined) throw new SchemaInvalid(path, `type "${unknown}" does not exist`)
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
    if (keyword && !this.aside) this.texts.push({ path: of.place.path, keyword, schema })
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
    const { name } = this.definitions.refer(key, target, this.aside === undefined)
    this.aside?.targets.add(key)
    return { $ref: `#/$defs/${name}` }
  }
}
