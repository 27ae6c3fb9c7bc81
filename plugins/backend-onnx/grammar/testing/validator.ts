import { Ajv } from "ajv"
import { Ajv2019 } from "ajv/dist/2019.js"
import { Ajv2020 } from "ajv/dist/2020.js"
import formats from "ajv-formats"
import type { Json } from "../../../../core/json.ts"
import { enforcedFormats } from "../schema/formats.ts"

const addFormats = formats.default

const draftOf = (schema: Json): typeof Ajv | typeof Ajv2019 | typeof Ajv2020 => {
  const named = String((schema as { readonly $schema?: Json })?.$schema ?? "")
  if (/draft-0[3467]/.test(named)) return Ajv
  return /2019-09/.test(named) ? Ajv2019 : Ajv2020
}

/**
 * Converts draft 4 to later drafts, as the validator does not know its boolean `exclusiveMinimum`
 * and its name.
 */
const sinceDraft4 = (schema: Json): Json => {
  if (Array.isArray(schema)) return schema.map(sinceDraft4)
  if (typeof schema !== "object" || schema === null) return schema
  const rest = { ...(schema as Record<string, Json>) }
  if (typeof rest.$schema === "string") delete rest.$schema
  // of OpenAPI, not of JSON Schema
  if (typeof rest.nullable === "boolean") delete rest.nullable
  for (const [flag, bound] of [
    ["exclusiveMinimum", "minimum"],
    ["exclusiveMaximum", "maximum"],
  ] as const) {
    if (typeof rest[flag] !== "boolean") continue
    if (rest[flag] && typeof rest[bound] === "number") rest[flag] = rest[bound]
    else delete rest[flag]
  }
  return Object.fromEntries(
    Object.entries(rest).map(([name, value]) => [
      name,
      ["const", "enum"].includes(name) ? value : sinceDraft4(value),
    ]),
  )
}

/** Makes an independent validator (ajv). Formats that are annotations only are not checked. */
export const independentValidator = (schema: Json): ((document: Json) => boolean) => {
  const ajv = new (draftOf(schema))({
    strict: false,
    validateSchema: false,
    logger: false,
    unicodeRegExp: true,
    validateFormats: true,
    // 19.99 is a multiple of 0.01
    multipleOfPrecision: 9,
    // as the drafts say
    ignoreKeywordsWithRef: draftOf(schema) === Ajv,
  })
  addFormats(ajv, {
    mode: "full",
    formats: enforcedFormats.filter((name) => !/^(idn|iri)/.test(name)) as never,
  })
  return ajv.compile(sinceDraft4(schema) as object)
}
