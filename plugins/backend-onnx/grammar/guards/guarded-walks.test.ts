import fc from "fast-check"
import { expect, test } from "vitest"
import type { Json } from "../../../../core/json.ts"
import { runs } from "../../../../testing/property.ts"
import { byteVocabulary, grammarVocabulary, isAllowed } from "../grammar-vocabulary.ts"
import { SchemaDocument } from "../schema/document.ts"
import { isObject } from "../schema/json-value.ts"
import { acceptsValue } from "../schema/validator/accepts.ts"
import { analyseSchema } from "../schema-report.ts"
import { inlineConstraints } from "../testing/inline-constraints.ts"

const end = 256
const bytes = inlineConstraints(byteVocabulary())

const names = fc.constantFrom("a", "b", "x_1", "x_2")
const scalar = fc.constantFrom<Json>(null, true, 0, 1, 2, 12, -1, "", "a", "ab", "é", 'q"')
const { value } = fc.letrec<{ value: Json }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 2 },
    scalar,
    fc.array(tie("value"), { maxLength: 3 }),
    fc.dictionary(names, tie("value"), { maxKeys: 3, noNullPrototype: true }),
  ),
}))

const count = fc.integer({ min: 0, max: 3 })
const { schema } = fc.letrec<{ schema: Json }>((tie) => {
  const sub = tie("schema")
  const map = fc.dictionary(names, sub, { maxKeys: 2, noNullPrototype: true })
  const some = (keywords: Readonly<Record<string, fc.Arbitrary<Json>>>) =>
    fc.record(keywords, { requiredKeys: [] })
  const list = fc.array(sub, { minLength: 1, maxLength: 2 })
  return {
    schema: fc.oneof(
      { maxDepth: 3, withCrossShrink: true },
      fc.constantFrom<Json>(true, {}, { type: "integer" }, { enum: ["a", "ab", 1, null] }),
      fc.constantFrom<Json>({ type: "string" }, { minimum: 1 }, { $ref: "#/$defs/d" }),
      some({
        ...{ type: fc.constant("array"), items: sub, uniqueItems: fc.boolean(), minItems: count },
        ...{ prefixItems: list, contains: sub, minContains: count, maxContains: count },
        unevaluatedItems: sub,
      }),
      some({
        ...{ type: fc.constant("object"), properties: map, minProperties: count },
        ...{ maxProperties: count, required: fc.uniqueArray(names, { maxLength: 2 }) },
        patternProperties: fc.dictionary(fc.constantFrom("^x_", "1$", "a|b"), sub, {
          noNullPrototype: true,
        }),
        propertyNames: fc.constantFrom<Json>({ maxLength: 2 }, { pattern: "1$" }, { minLength: 2 }),
        additionalProperties: sub,
      }),
      some({ ...{ properties: map, unevaluatedProperties: fc.boolean() }, anyOf: list }),
      some({ anyOf: list, uniqueItems: fc.constant(true) }),
      some({ allOf: list, maxProperties: count }),
    ),
  }
})

const orders = (parts: readonly string[]): readonly string[][] =>
  parts.length <= 1
    ? [[...parts]]
    : parts.flatMap((part, i) =>
        orders([...parts.slice(0, i), ...parts.slice(i + 1)]).map((rest) => [part, ...rest]),
      )

const mostTexts = 60

/** Texts of a value: in all orders of properties, as each is written in one order only. */
const textsOf = (given: Json): readonly string[] => {
  const each = (options: readonly (readonly string[])[]): readonly string[][] =>
    options.reduce<readonly string[][]>(
      (before, texts) =>
        before.flatMap((parts) => texts.map((text) => [...parts, text])).slice(0, mostTexts),
      [[]],
    )
  if (Array.isArray(given)) return each(given.map(textsOf)).map((parts) => `[${parts.join(", ")}]`)
  if (!isObject(given)) return [JSON.stringify(given)]
  const properties = Object.entries(given).map(([name, part]) =>
    textsOf(part).map((text) => `${JSON.stringify(name)}: ${text}`),
  )
  return each(properties)
    .flatMap((parts) => orders(parts))
    .slice(0, mostTexts)
    .map((parts) => `{${parts.join(",\n  ")}}`)
}

const isWritable = (whole: Json, text: string): boolean => {
  const constraint = bytes.open({ kind: "schema", schema: whole })
  try {
    for (const byte of Buffer.from(text)) {
      if (!isAllowed(constraint.mask(), byte)) return false
      constraint.accept(byte)
    }
    const mayEnd = isAllowed(constraint.mask(), end)
    expect(constraint.isComplete()).toBe(mayEnd)
    return mayEnd
  } finally {
    constraint.release()
  }
}

const withDefs = (given: Json): Json => ({
  ...(given as object),
  $defs: { d: { type: "array", uniqueItems: true, items: { type: ["integer", "array"] } } },
})

/** Whether the schema is one that is guarded and compiles. */
const isGuarded = (whole: Json): boolean => {
  const { refused, guards, enforced } = analyseSchema(whole)
  if (refused || !guards || !enforced) return false
  const constraint = bytes.open
  try {
    const opened = constraint({ kind: "schema", schema: whole })
    opened.mask()
    opened.release()
    return true
  } catch {
    return false
  }
}

test("a document is written to its end exactly if the validator accepts it", () => {
  fc.assert(
    fc.property(
      schema.filter((one) => typeof one === "object"),
      fc.array(value, { minLength: 4, maxLength: 8 }),
      (given, values) => {
        const whole = withDefs(given)
        fc.pre(isGuarded(whole))
        const document = new SchemaDocument(whole)
        for (const one of values) {
          const isWritten = textsOf(one).some((text) => isWritable(whole, text))
          const isAccepted = acceptsValue(document, document.root, one)
          expect(isWritten, JSON.stringify([whole, one])).toBe(isAccepted)
        }
      },
    ),
    { numRuns: runs(400) },
  )
})

const wide = [
  ...[
    '"},{"',
    '","',
    '", "',
    '"]',
    '"]}',
    "]]",
    "}]",
    "1,",
    "1]",
    '"a',
    'a"',
    'a","a"',
    '":',
    '": 1,',
  ],
  ...[
    "true",
    "rue,",
    "ull]",
    " 1,\n  ",
    "[]",
    "{}",
    '{"a":',
    '\\"',
    '\\""',
    '\\",',
    "é",
    '"é"]',
    "2}",
  ],
]
const wideVocabulary = grammarVocabulary(
  end + 1 + wide.length,
  (id) => (id < end ? Uint8Array.of(id) : Buffer.from(wide[id - end - 1] ?? "")),
  [end],
)
const tokens = inlineConstraints(wideVocabulary)

test("a token is allowed exactly if its bytes are, one by one", () => {
  fc.assert(
    fc.property(
      schema.filter((one) => typeof one === "object"),
      value,
      fc.nat(),
      (given, one, cut) => {
        const whole = withDefs(given)
        fc.pre(isGuarded(whole))
        const text = textsOf(one).find((each) => isWritable(whole, each))
        fc.pre(text !== undefined)
        const written = Buffer.from(text!).subarray(0, cut % (Buffer.byteLength(text!) + 1))
        const start = written.toString("latin1")
        const begun = tokens.open({ kind: "schema", schema: whole })
        for (const byte of written) begun.accept(byte)
        for (const [i, token] of wide.entries()) {
          const single = bytes.open({ kind: "schema", schema: whole })
          for (const byte of written) single.accept(byte)
          let isFitting = true
          for (const byte of Buffer.from(token)) {
            isFitting &&= isAllowed(single.mask(), byte)
            if (isFitting) single.accept(byte)
          }
          single.release()
          expect(isAllowed(begun.mask(), end + 1 + i), JSON.stringify([whole, start, token])).toBe(
            isFitting,
          )
        }
        begun.release()
      },
    ),
    { numRuns: runs(300) },
  )
})
