import { type Schema, Validator } from "@cfworker/json-schema"
import type { Json } from "../../../core/json.ts"

/** A text that has to keep a JSON Schema, or match a whole ECMAScript pattern. */
export type FormCheck = {
  /** The field of the request that asks for it. */
  readonly param: string
  readonly text: string
} & ({ readonly schema: Json } | { readonly pattern: string })

/** What a text breaks; `at` is the place in it, which may hold words of the answer. */
export interface BrokenForm {
  readonly param: string
  readonly keyword: string
  readonly at: string
}

const maps: ReadonlySet<string> = new Set([
  "properties",
  "patternProperties",
  "$defs",
  "definitions",
  "dependentSchemas",
])
const values: ReadonlySet<string> = new Set(["enum", "const", "default", "examples"])

/** The schema without `format`, which is an annotation (JSON Schema 2020-12, 7.2.1). */
const withoutFormats = (schema: Json): Json => {
  if (Array.isArray(schema)) return schema.map(withoutFormats)
  if (typeof schema !== "object" || schema === null) return schema
  const kept = Object.entries(schema).filter(
    ([key, value]) => key !== "format" || typeof value !== "string",
  )
  return Object.fromEntries(
    kept.map(([key, value]) => {
      if (values.has(key)) return [key, value]
      const isMap = maps.has(key) && typeof value === "object" && value !== null
      return [
        key,
        isMap
          ? Object.fromEntries(
              Object.entries(value).map(([name, one]) => [name, withoutFormats(one as Json)]),
            )
          : withoutFormats(value as Json),
      ]
    }),
  )
}

const brokenBy = (check: FormCheck): Omit<BrokenForm, "param"> | undefined => {
  if ("pattern" in check) {
    const whole = new RegExp(`^(?:${check.pattern})$`, "u")
    return whole.test(check.text) ? undefined : { keyword: "pattern", at: "/" }
  }
  const schema = withoutFormats(check.schema) as Schema | boolean
  const { valid, errors } = new Validator(schema, "2020-12").validate(JSON.parse(check.text))
  if (valid) return undefined
  // the innermost says most
  const deepest = errors.at(-1)
  return {
    keyword: deepest?.keyword ?? "schema",
    at: deepest?.instanceLocation.replace(/^#/, "") || "/",
  }
}

/** Runs in the thread pool. Returns what is broken first; throws where a form can't be checked. */
export default (checks: readonly FormCheck[]): BrokenForm | undefined => {
  for (const check of checks) {
    const broken = brokenBy(check)
    if (broken) return { param: check.param, ...broken }
  }
  return undefined
}
