import type { Json } from "../../../../core/json.ts"
import type { SchemaDocument } from "./document.ts"
import { isObject } from "./json-value.ts"
import { handled } from "./known-keywords.ts"
import type { EnforcedSchema, Keywords } from "./reading.ts"
import { acceptsValue } from "./validator/accepts.ts"

const isUnwritten = (char: string): boolean =>
  char === "\x7f" || (char < " " && !"\b\t\n\f\r".includes(char))

/**
 * Whether the grammar can write the value: control characters without a short escape are never
 * written, nor lone surrogates.
 */
export const isWritable = (value: Json): boolean => {
  if (typeof value === "string") return !/\p{Cs}/u.test(value) && ![...value].some(isUnwritten)
  if (Array.isArray(value)) return value.every(isWritable)
  return (
    !isObject(value) ||
    Object.entries(value).every(([name, part]) => isWritable(name) && isWritable(part))
  )
}

/**
 * Reads `enum` and `const` as the values that satisfy all other keywords, which then need no
 * constraint of their own.
 */
export const readValues = (
  of: Keywords,
  document: SchemaDocument,
): readonly EnforcedSchema[] | undefined => {
  if (!of.has("enum") && !of.has("const")) return undefined
  const listed = of.value("enum", Array.isArray, "a list") as readonly Json[] | undefined
  const values = of.has("const") ? [of.schema.const] : listed!
  const fitting = values.filter((value) => acceptsValue(document, of.place, value))
  for (const keyword of Object.keys(of.schema)) if (handled.has(keyword)) of.enforce(keyword)
  for (const { keyword, ref, target } of document.references(of.place))
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
