import type { Json } from "../../../../core/json.ts"
import type { KeywordVerdict } from "../../../../core/ports/schema-checker.ts"
import type { Place, SchemaDocument } from "./document.ts"
import type { JsonObject } from "./json-value.ts"

/** A schema in the few words that the masks' engine keeps exactly: only plain keywords, `enum`, `allOf`, `anyOf`, and `$ref` into `$defs`. */
export type Guided = boolean | Readonly<Record<string, Json>>

/** What the parts of the reader share. */
export interface Reading {
  readonly document: SchemaDocument
  /** Reads a schema inside of the present one. */
  read(place: Place): Guided
  say(place: Place, keyword: string, verdict: KeywordVerdict["verdict"], reason?: string): void
}

/** No JSON Schema; the message says what is wrong at the path. */
export class SchemaInvalid extends Error {
  override readonly name = "SchemaInvalid"
  readonly path: string

  constructor(path: string, message: string) {
    super(message)
    this.path = path
  }
}

/** A schema object that is read, with its keywords. */
export class Keywords {
  readonly place: Place
  readonly schema: JsonObject
  private readonly reading: Reading

  constructor(reading: Reading, place: Place) {
    this.reading = reading
    this.place = place
    this.schema = place.schema as JsonObject
  }

  has(keyword: string): boolean {
    return Object.hasOwn(this.schema, keyword)
  }

  /** The keyword's value, if it has one; throws where it is of another kind. */
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

  inside(...names: readonly (string | number)[]): Place {
    return this.reading.document.at(this.place, ...names)
  }

  read(...names: readonly (string | number)[]): Guided {
    return this.reading.read(this.inside(...names))
  }
}

/** All of them at once. */
export const allOf = (parts: readonly Guided[]): Guided => {
  if (parts.includes(false)) return false
  const needed = parts.filter((part) => part !== true && Object.keys(part).length > 0)
  if (needed.length === 0) return true
  return needed.length === 1 ? needed[0]! : { allOf: needed }
}

export const anyOf = (options: readonly Guided[]): Guided => {
  const possible = options.filter((option) => option !== false)
  if (possible.length === 0) return false
  return possible.length === 1 ? possible[0]! : { anyOf: possible }
}
