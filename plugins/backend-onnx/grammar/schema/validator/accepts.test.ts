import fc from "fast-check"
import { expect, test } from "vitest"
import type { Json } from "../../../../../core/json.ts"
import { runs } from "../../../../../testing/property.ts"
import { randomSchema, randomValue } from "../../testing/random-schemas.ts"
import { independentValidator } from "../../testing/validator.ts"
import { SchemaDocument } from "../document.ts"
import { acceptsValue, judgeValue } from "./accepts.ts"
import { matchesPattern } from "./check.ts"

const accepts = (schema: Json, value: Json): boolean => {
  const document = new SchemaDocument(schema)
  return acceptsValue(document, document.root, value)
}
const judge = (schema: Json, value: Json): boolean | undefined => {
  const document = new SchemaDocument(schema)
  return judgeValue(document, document.root, value)
}
const draft7 = { $schema: "http://json-schema.org/draft-07/schema#" }
const draft2019 = { $schema: "https://json-schema.org/draft/2019-09/schema" }

/**
 * The independent validator accepts empty lists for `prefixItems` beside `contains`, does not count
 * what `contains`, or `if` by itself, evaluates, and errs about some `oneOf` with `unevaluated` and
 * about one within another.
 */
const hasFlawElsewhere = (given: Json): boolean => {
  const text = JSON.stringify(given)
  const unevaluated = text.split('"unevaluated').length - 1
  return (
    (text.includes('"contains"') && /"(prefixItems|unevaluatedItems)"/.test(text)) ||
    unevaluated > 1 ||
    (unevaluated > 0 && /"(if|oneOf)"/.test(text))
  )
}

/** Undefined: the code that the independent validator wrote fails. */
const verdictOf = (validates: (value: Json) => boolean, value: Json): boolean | undefined => {
  try {
    return validates(value)
  } catch {
    return undefined
  }
}

test("judges as an independent validator does", () => {
  fc.assert(
    fc.property(
      randomSchema,
      fc.array(randomValue, { minLength: 1, maxLength: 8 }),
      (schema, values) => {
        fc.pre(!hasFlawElsewhere(schema))
        const validates = independentValidator(schema)
        for (const one of values) {
          const expected = verdictOf(validates, one)
          if (expected !== undefined)
            expect(accepts(schema, one), JSON.stringify([schema, one])).toBe(expected)
        }
      },
    ),
    { numRuns: runs(400) },
  )
})

test("numbers are compared in decimal, texts counted in characters", () => {
  for (const [given, step, isMultiple] of [
    [0.07, 0.01, true],
    [19.99, 0.01, true],
    [19.995, 0.01, false],
    [4.35, 0.05, true],
    [1e-7, 1e-8, true],
    [1e300, 0.1, true],
    [2 ** 53, 3, false],
    [-0.3, 0.1, true],
    [Number.POSITIVE_INFINITY, 0.5, false],
  ] as const)
    expect(accepts({ multipleOf: step }, given), `${given} of ${step}`).toBe(isMultiple)
  expect(accepts({ maxLength: 2 }, "😀😀")).toBe(true)
  expect(accepts({ minLength: 3 }, "😀😀")).toBe(false)
  expect(accepts({ uniqueItems: true }, [0, -0])).toBe(false)
  expect(accepts({ enum: [{ a: 1, b: [2] }] }, { b: [2], a: 1 })).toBe(true)
})

test("keywords beside a $ref count since draft 2019-09", () => {
  const schema = {
    definitions: { t: { type: "string" } },
    properties: {
      a: { $ref: "#/definitions/t", minLength: 2 },
    },
  }
  expect(accepts({ ...draft7, ...schema }, { a: "b" })).toBe(true)
  expect(accepts({ ...draft2019, ...schema }, { a: "b" })).toBe(false)
  expect(accepts(schema, { a: "b" })).toBe(false)
  const whole = {
    ...draft7,
    $ref: "#/definitions/t",
    definitions: { t: { type: "string" } },
    minLength: 2,
  }
  expect(accepts(whole, "a")).toBe(true)
  expect(accepts(whole, 1)).toBe(false)
})

test("a $dynamicRef leads to the outermost resource with its anchor", () => {
  const tree = {
    $id: "https://example.com/tree",
    $dynamicAnchor: "node",
    type: "object",
    properties: { children: { type: "array", items: { $dynamicRef: "#node" } } },
  }
  const strict = {
    $id: "https://example.com/strict-tree",
    $dynamicAnchor: "node",
    $ref: "tree",
    unevaluatedProperties: false,
    $defs: { tree },
  }
  expect(accepts(tree, { children: [{ more: 1 }] })).toBe(true)
  expect(accepts(strict, { children: [{ children: [] }] })).toBe(true)
  expect(accepts(strict, { children: [{ more: 1 }] })).toBe(false)
  // the same schema by a way that does not pass the strict one
  const document = new SchemaDocument(strict)
  const plain = new SchemaDocument({ $ref: "tree", $id: strict.$id, $defs: { strict, tree } })
  expect(acceptsValue(document, document.root, { children: [{ more: 1 }] })).toBe(false)
  expect(acceptsValue(plain, plain.root, { children: [{ more: 1 }] })).toBe(true)
})

test("a $recursiveRef leads to the outermost resource that allows it", () => {
  const schema = (isOpen: boolean) => ({
    ...draft2019,
    $id: "https://example.com/outer",
    $recursiveAnchor: isOpen,
    $ref: "inner",
    unevaluatedProperties: false,
    $defs: {
      inner: {
        $id: "inner",
        $recursiveAnchor: true,
        properties: { next: { $recursiveRef: "#" } },
      },
    },
  })
  expect(accepts(schema(true), { next: { next: {} } })).toBe(true)
  expect(accepts(schema(true), { next: { more: 1 } })).toBe(false)
  expect(accepts(schema(false), { next: { more: 1 } })).toBe(true)
})

test("what is no schema's place has no identifier", () => {
  const schema = {
    $defs: {
      real: { $id: "https://example.com/a", type: "string" },
      value: { enum: [{ $id: "https://example.com/b" }] },
    },
    unknown: { $id: "https://example.com/c" },
  }
  const document = new SchemaDocument(schema)
  const at = (name: string) => document.follow(`https://example.com/${name}`, document.root)?.path
  expect([at("a"), at("b"), at("c")]).toEqual(["/$defs/real", undefined, undefined])
})

test("what can't be judged is undecided, and not accepted, also under not", () => {
  const doubled = Object.fromEntries(
    Array.from({ length: 40 }, (_, i) => [
      `d${i}`,
      { allOf: Array(2).fill({ $ref: `#/$defs/d${i + 1}` }) },
    ]),
  )
  const deep = Array.from({ length: 3_000 }).reduce<Json>((inner) => [inner], [])
  for (const [schema, given] of [
    [{ $ref: "#" }, 1],
    [{ $ref: "https://example.com/elsewhere" }, 1],
    [{ not: { $ref: "#" } }, 1],
    [{ pattern: "(a)\\1" }, "aa"],
    [{ not: { pattern: "(a)\\1" } }, "b"],
    [{ $ref: "#/$defs/d0", $defs: { ...doubled, d40: {} } }, 1],
    [{ items: { $ref: "#" }, type: "array" }, deep],
    [{ pattern: "(a|b|ab){1,1000}c" }, "ab".repeat(5_000)],
  ] as const) {
    expect(judge(schema, given), JSON.stringify(schema).slice(0, 80)).toBeUndefined()
    expect(accepts(schema, given)).toBe(false)
  }
})

test("a name is matched without backtracking, too", () => {
  expect(matchesPattern("^(a+)+$", `${"a".repeat(2_000)}!`)).toBe(false)
  expect(matchesPattern("(?<=x_)y", "x_y")).toBe(true)
  expect(matchesPattern("(a)\\1", "aa")).toBeUndefined()
  expect(matchesPattern("(a|b|ab){1,900}c", "ab".repeat(5_000))).toBeUndefined()
})

test("the values of a document share their work, but for those that have work of their own", () => {
  const doubled = Object.fromEntries(
    Array.from({ length: 40 }, (_, i) => [
      `d${i}`,
      { anyOf: Array(2).fill({ $ref: `#/$defs/d${i + 1}` }) },
    ]),
  )
  const document = new SchemaDocument({
    anyOf: [{ const: 1 }, { $ref: "#/$defs/d0" }],
    $defs: { ...doubled, d40: false },
  })
  const judged = (value: Json, most?: number) =>
    judgeValue(document, document.root, value, most === undefined ? {} : { most })
  for (let i = 0; i < 20; i++) judged(2, 300_000)
  expect(judged(1)).toBe(true)
  for (let i = 0; i < 20; i++) judged(2)
  expect(judged(1)).toBeUndefined()
  expect(judged(1, 10)).toBe(true)
})
