import fc from "fast-check"
import type { Json } from "../../../../core/json.ts"

const names = fc.constantFrom("a", "b", "c", "x_1")
export const randomValue = fc.letrec<{ value: Json }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 2 },
    fc.constantFrom<Json>(null, true, false, 0, 1, 2, 3, -1, 1.5, 10, "", "a", "ab", "b1", "😀😀"),
    fc.array(tie("value"), { maxLength: 3 }),
    fc.dictionary(names, tie("value"), { maxKeys: 3, noNullPrototype: true }),
  ),
})).value

const count = fc.integer({ min: 0, max: 3 })
const { schema } = fc.letrec<{ schema: Json }>((tie) => {
  const sub = tie("schema")
  const list = fc.array(sub, { minLength: 1, maxLength: 3 })
  const map = fc.dictionary(names, sub, { maxKeys: 2, noNullPrototype: true })
  const keywords: Readonly<Record<string, fc.Arbitrary<Json>>> = {
    type: fc.constantFrom<Json>("object", "array", "string", "integer", "number", [
      "null",
      "array",
    ]),
    ...{ enum: fc.uniqueArray(randomValue, { minLength: 1, maxLength: 3 }), const: randomValue },
    ...{ minimum: count, maximum: count, exclusiveMinimum: count, exclusiveMaximum: count },
    multipleOf: fc.constantFrom(2, 0.5, 3),
    ...{ minLength: count, maxLength: count },
    pattern: fc.constantFrom("^a", "b$", "^[a-z]*$", "\\d", "^(?!a)"),
    ...{ minItems: count, maxItems: count, uniqueItems: fc.boolean() },
    ...{ prefixItems: list, items: sub, contains: sub, minContains: count, maxContains: count },
    ...{ minProperties: count, maxProperties: count, propertyNames: sub },
    ...{ required: fc.uniqueArray(names, { maxLength: 2 }), properties: map },
    ...{ additionalProperties: sub, dependentSchemas: map },
    patternProperties: fc.dictionary(fc.constantFrom("^x_", "a|b"), sub, { noNullPrototype: true }),
    dependentRequired: fc.dictionary(names, fc.uniqueArray(names), { noNullPrototype: true }),
    ...Object.fromEntries(["allOf", "anyOf", "oneOf"].map((keyword) => [keyword, list])),
    ...Object.fromEntries(["not", "if", "then", "else"].map((keyword) => [keyword, sub])),
    ...{ unevaluatedProperties: sub, unevaluatedItems: sub },
    $ref: fc.constantFrom("#/$defs/d0", "#/$defs/d1"),
  }
  const some = fc.uniqueArray(fc.constantFrom(...Object.keys(keywords)), {
    minLength: 1,
    maxLength: 4,
  })
  return {
    schema: fc.oneof(
      { maxDepth: 3, withCrossShrink: true },
      fc.boolean(),
      some.chain((chosen) =>
        fc.record(Object.fromEntries(chosen.map((keyword) => [keyword, keywords[keyword]!]))),
      ),
    ),
  }
})
const plain = fc.constantFrom<Json>(
  { type: "array", items: { type: "integer" } },
  { properties: { a: { type: "string" } } },
  { maxLength: 1, minimum: 1, minItems: 1 },
)

export const randomSchema = fc
  .tuple(
    schema.filter((one) => typeof one === "object"),
    plain,
    plain,
  )
  .map(([given, d0, d1]): Json => ({ ...(given as object), $defs: { d0, d1 } }))
