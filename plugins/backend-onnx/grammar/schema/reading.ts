import type { Json } from "../../../../core/json.ts"
import type { KeywordVerdict } from "../../../../core/ports/schema-checker.ts"
import type { SchemaDocument, SchemaLocation } from "./document.ts"
import type { JsonObject } from "./json-value.ts"

/**
 * A schema in the subset that llguidance enforces exactly: plain keywords, `enum`, `allOf`,
 * `anyOf`, and `$ref` into `$defs`.
 */
export type EnforcedSchema = boolean | Readonly<Record<string, Json>>

export interface ReadingOptions {
  /** The maximum number of alternatives that a keyword may be written out to. */
  readonly mostWays: number
  /** Whether all keywords of a schema are written; otherwise one of them, and none is merged. */
  readonly isMerging: boolean
  /** Whether the alternatives of `anyOf` and `oneOf` are written. */
  readonly isChoosing: boolean
  /** Whether `minProperties` and `maxProperties` are left to llguidance where it can count. */
  readonly isCounting: boolean
  /** Whether patterns of names are written. */
  readonly isWritingPatterns: boolean
}

/** What the readers of keywords share. */
export interface Reading {
  readonly document: SchemaDocument
  /** Reads a subschema; without its conditions: all but `if`, `then` and `else`. */
  read(place: SchemaLocation, isWithoutConditions?: boolean): EnforcedSchema
  /**
   * Reads a schema of which something else depends than whether a value satisfies it: what is
   * refused or guarded inside is not reported, but makes the result inexact, which then accepts more
   * than it should.
   */
  readAside(place: SchemaLocation, isReported?: boolean): ReadAside
  /** How many steps negations may still take. */
  negationSteps: number
  /** How many steps comparisons of two schemas may still take. */
  readonly disjointSteps: { left: number }
  /** Adds a definition, to which `$ref: "#/$defs/NAME"` leads. */
  define(name: string, schema: EnforcedSchema): void
  newName(): string
  readonly options: ReadingOptions
  say(
    place: SchemaLocation,
    keyword: string,
    verdict: KeywordVerdict["verdict"],
    reason?: string,
  ): void
  /** The keyword is checked on finished values, or refused where they can't be judged. */
  guard(place: SchemaLocation, keyword: string, reason: string): void
}

export interface ReadAside {
  readonly enforced: EnforcedSchema
  readonly isExact: boolean
}

/** Not a JSON Schema; the message says what is wrong at the path. */
export class SchemaInvalid extends Error {
  override readonly name = "SchemaInvalid"
  readonly path: string

  constructor(path: string, message: string) {
    super(message)
    this.path = path
  }
}

/** The keywords of a schema object, with the verdict on each. */
export class Keywords {
  readonly place: SchemaLocation
  readonly schema: JsonObject
  private readonly reading: Reading

  constructor(reading: Reading, place: SchemaLocation) {
    this.reading = reading
    this.place = place
    this.schema = place.schema as JsonObject
  }

  has(keyword: string): boolean {
    return Object.hasOwn(this.schema, keyword)
  }

  /** Returns the keyword's value, if present. Throws where it has another type. */
  value<A extends Json>(
    keyword: string,
    isKind: (value: Json) => value is A,
    kind: string,
  ): A | undefined {
    if (!this.has(keyword)) return undefined
    const value = this.schema[keyword]
    if (!isKind(value))
      throw new SchemaInvalid(`${this.place.path}/${keyword}`, `${keyword} must be ${kind}`)
    return value
  }

  enforce(keyword: string, reason?: string): void {
    this.reading.say(this.place, keyword, "enforced", reason)
  }

  note(keyword: string, reason?: string): void {
    this.reading.say(this.place, keyword, "annotation", reason)
  }

  refuse(keyword: string, reason: string): void {
    this.reading.say(this.place, keyword, "refused", reason)
  }

  /**
   * For a keyword that the enforced schema can't say: values are written without it, and checked
   * when they are finished. The enforced schema must accept at least what the schema does.
   */
  guard(keyword: string, reason = "checked on finished values"): void {
    this.reading.guard(this.place, keyword, reason)
  }

  inside(...names: readonly (string | number)[]): SchemaLocation {
    return this.reading.document.at(this.place, ...names)
  }

  read(...names: readonly (string | number)[]): EnforcedSchema {
    return this.reading.read(this.inside(...names))
  }
}

/** The conjunction of schemas. */
export const allOf = (parts: readonly EnforcedSchema[]): EnforcedSchema => {
  if (parts.includes(false)) return false
  const needed = parts.filter((part) => part !== true && Object.keys(part).length > 0)
  if (needed.length === 0) return true
  return needed.length === 1 ? needed[0]! : { allOf: needed }
}

export const anyOf = (options: readonly EnforcedSchema[]): EnforcedSchema => {
  const possible = options.filter((option) => option !== false)
  if (possible.length === 0) return false
  return possible.length === 1 ? possible[0]! : { anyOf: possible }
}
