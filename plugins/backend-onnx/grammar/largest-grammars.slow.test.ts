import { expect, test } from "vitest"
import type { Json } from "../../../core/json.ts"
import compileJob from "./compile-job.ts"
import { grammarVocabulary } from "./grammar-vocabulary.ts"
import { Matchers } from "./matchers.ts"

const strict = (schema: Json) => compileJob({ kind: "schema", schema, isStrict: true })
const loose = (schema: Json) => compileJob({ kind: "schema", schema, isStrict: false })

const optional = (count: number) => ({
  type: "object",
  properties: Object.fromEntries(
    Array.from({ length: count }, (_, i) => [`p${i}`, { type: "string" }]),
  ),
})

/** An object whose property `m` is one of five objects with three properties each. */
const choice = (letter: string) => ({
  type: "object",
  properties: {
    m: {
      anyOf: Array.from({ length: 5 }, (_, i) => ({
        ...optional(2),
        properties: { [`${letter}${i}`]: { type: "string" }, ...optional(2).properties },
      })),
    },
  },
})

test("what the masks' engine would fail at in the middle of an answer is refused before", () => {
  for (const [schema, reason] of [
    [optional(480), /"properties" with 480 optional/],
    [
      {
        type: "object",
        properties: { a: { type: "array", items: { $ref: "#/$defs/x" } } },
        $defs: { x: optional(600) },
      },
      /"properties" with 600/,
    ],
    [{ enum: Array.from({ length: 2_000 }, (_, a) => ({ a })) }, /2000 objects/],
  ] as const) {
    expect(strict(schema), JSON.stringify(schema).slice(0, 80)).toMatchObject({
      result: "tooComplex",
      reason: expect.stringMatching(reason),
    })
    expect(loose(schema)).toMatchObject({ result: "ok" })
  }
  // alternatives that are too many are checked on finished values
  for (const schema of [
    { anyOf: Array.from({ length: 10 }, () => optional(100)) },
    {
      allOf: [
        optional(200),
        { anyOf: Array.from({ length: 5 }, (_, i) => ({ type: "object", required: [`p${i}`] })) },
      ],
    },
  ])
    expect(strict(schema)).toMatchObject({ result: "ok" })
  const recursive = {
    ...optional(100),
    $defs: {},
    properties: {
      ...optional(100).properties,
      inner: { anyOf: [{ $ref: "#" }, { type: "array", items: { $ref: "#" } }] },
    },
  }
  for (const schema of [recursive, { enum: Array.from({ length: 2_500 }, (_, i) => `v${i}`) }])
    expect(strict(schema)).toMatchObject({ result: "ok" })
  for (const schema of [
    { type: "integer", multipleOf: 1_001 },
    { type: "string", minLength: 10_001 },
  ])
    expect(strict(schema), JSON.stringify(schema)).toMatchObject({ result: "ok" })
  expect(strict({ type: "string", minLength: 20_001 })).toMatchObject({
    result: "refused",
    keyword: "minLength",
  })
})

test("what is accepted runs over tokens of several characters", () => {
  const digits = Array.from({ length: 1_000 }, (_, i) => Buffer.from(String(i).padStart(3, "0")))
  const vocabulary = grammarVocabulary(
    1_257,
    (id) => (id < 256 ? Uint8Array.of(id) : (digits[id - 256] ?? new Uint8Array())),
    [1_256],
  )
  const matchers = new Matchers(vocabulary)
  for (const [i, [schema, text]] of (
    [
      [{ type: "integer", multipleOf: 997 }, "123456"],
      [{ type: "integer", multipleOf: 1_000 }, "123456"],
      [optional(450), '{"p449":"x"'],
      [{ ...optional(474), additionalProperties: false }, '{"p3":"x"'],
      [{ enum: Array.from({ length: 1_900 }, (_, a) => ({ a })) }, '{"a":17'],
      // merged below the root, where alternatives are not counted
      [{ allOf: ["a", "b", "c"].map(choice) }, '{"m":{"p0":"x","p1":"y"'],
    ] as const
  ).entries()) {
    const compiled = strict(schema)
    if (compiled.result !== "ok") throw new Error(JSON.stringify(compiled))
    matchers.add(i, compiled.grammar)
    for (const byte of Buffer.from(text)) {
      matchers.mask(i)
      matchers.accept(i, byte)
    }
    matchers.mask(i)
    matchers.release(i)
  }
})
