import { expect, test } from "vitest"
import type { Json } from "../../../../core/json.ts"
import { byteVocabulary, isAllowed } from "../grammar-vocabulary.ts"
import { analyseSchema } from "../schema-report.ts"
import { inlineConstraints } from "../testing/inline-constraints.ts"
import { GuardedAnswer } from "./answer-guard.ts"
import { GuardedSchemas } from "./guarded-schemas.ts"

const end = 256
const constraints = inlineConstraints(byteVocabulary())

/** How far a text can be written: up to the byte that no mask allows, or to its end. */
const written = (schema: Json, text: string): string => {
  const constraint = constraints.open({ kind: "schema", schema })
  const bytes = Buffer.from(text)
  try {
    for (const [i, byte] of bytes.entries()) {
      if (!isAllowed(constraint.mask(), byte)) return bytes.subarray(0, i).toString()
      constraint.accept(byte)
    }
    const mayEnd = isAllowed(constraint.mask(), end)
    expect(mayEnd).toBe(constraint.isComplete())
    return mayEnd ? `${text}$` : text
  } finally {
    constraint.release()
  }
}

const set = { type: "array", items: { type: "integer" }, uniqueItems: true }

test("a guarded keyword is enforced, and says how", () => {
  const { keywords, refused, guards } = analyseSchema(set)
  expect(refused).toBeUndefined()
  expect(guards).toBeDefined()
  expect(keywords.find(({ keyword }) => keyword === "uniqueItems")).toMatchObject({
    verdict: "enforced",
    reason: expect.stringMatching(/finished/),
  })
  expect(analyseSchema({ ...set, uniqueItems: false }).guards).toBeUndefined()
})

test("an item that was written before can't be finished", () => {
  expect(written(set, "[1,2,12]")).toBe("[1,2,12]$")
  expect(written(set, "[1,2,1]")).toBe("[1,2,1")
  expect(written(set, "[1,2,1,")).toBe("[1,2,1")
  expect(written(set, "[1, 2, 1 ]")).toBe("[1, 2, 1")
  const texts = { type: "array", items: { type: "string" }, uniqueItems: true }
  expect(written(texts, '["a","é","ab"]')).toBe('["a","é","ab"]$')
  expect(written(texts, '["é","a\\n","é')).toBe('["é","a\\n","é')
  expect(written(texts, '["é","é"')).toBe('["é","é')
  const objects = { type: "array", uniqueItems: true }
  expect(written(objects, '[{"a":1,"b":[]},{"b":[],"a":1.0}]')).toBe(
    '[{"a":1,"b":[]},{"b":[],"a":1.0',
  )
})

test("of few values, only those are begun that were not written", () => {
  const colours = {
    type: "array",
    items: { enum: ["red", "rose", "green"] },
    uniqueItems: true,
    minItems: 2,
  }
  expect(written(colours, '["red","red"]')).toBe('["red","r')
  expect(written(colours, '["red","rose","g')).toBe('["red","rose","g')
  expect(written(colours, '["red","rose","r')).toBe('["red","rose","')
  expect(written(colours, '["red","rose","green",')).toBe('["red","rose","green"')
  expect(analyseSchema({ ...colours, minItems: 4 }).enforced).toBeUndefined()
})

test("few numbers are begun as they are written: without an exponent", () => {
  const items = { enum: [1e-7, 1e-8, -1.5e21, 2] }
  const few = { type: "array", items, uniqueItems: true, minItems: 1 }
  const all = "[0.0000001,0.00000001,-1500000000000000000000,2]"
  expect(written(few, all)).toBe(`${all}$`)
  expect(written(few, "[0.0000001,0.0000001]")).toBe("[0.0000001,0.000000")
})

test("dynamic scopes do not multiply what is looked at", () => {
  const count = 11
  const resources = Array.from({ length: count }, (_, i): [string, Json] => {
    const later = Array.from({ length: count - i - 1 }, (_, j) => ({ $ref: `r${i + j + 1}` }))
    const parts = [{ minimum: 0 }, ...later]
    return [`d${i}`, { $id: `r${i}`, $dynamicAnchor: `a${i}`, allOf: parts }]
  })
  const scoped = {
    type: "array",
    items: { enum: [1, 2, -1], $ref: "r0" },
    uniqueItems: true,
    $defs: Object.fromEntries(resources),
  }
  const { guards } = analyseSchema(scoped)
  expect(new GuardedSchemas(guards!).isBeyond).toBe(true)
  expect(written(scoped, "[1]")).toBe("[1]$")
  expect(written(scoped, "[1,1]")).toBe("[1,1")
})

test("what would take too long to judge is not accepted, in bounded time", () => {
  const levels = Array.from({ length: 40 }, (_, i): [string, Json] => [
    `d${i}`,
    { allOf: [{ $ref: `#/$defs/d${i + 1}` }, { $ref: `#/$defs/d${i + 1}` }] },
  ])
  const endless = {
    type: "array",
    items: { type: "string" },
    contains: { $ref: "#/$defs/d0" },
    $defs: { ...Object.fromEntries(levels), d40: { minLength: 1 } },
  }
  expect(written(endless, '["a"]')).toBe('["a"')
})

test("items are counted by what they are", () => {
  const some = {
    type: "array",
    items: { type: "integer" },
    contains: { minimum: 5 },
    maxContains: 2,
  }
  expect(written(some, "[1,2]")).toBe("[1,2")
  expect(written(some, "[1,7]")).toBe("[1,7]$")
  expect(written(some, "[7,7,1,8]")).toBe("[7,7,1,8")
  expect(written({ ...some, maxItems: 2 }, "[1,2]")).toBe("[1,2")
  expect(written({ ...some, maxItems: 2, minContains: 2 }, "[1,7]")).toBe("[1")
})

test("a document within an answer is checked, too", () => {
  const before = '{"name": "f", "arguments": '
  const schema = { type: "object", properties: { a: set }, additionalProperties: false }
  const text = (inner: string) => `see <call>${before}${inner}}</call>`
  const lark = [
    'start: TEXT "<call>" call "</call>"',
    "TEXT: /[a-z ]*/",
    `call: ${JSON.stringify(before)} doc "}"`,
    `doc: %json ${JSON.stringify(analyseSchema(schema).enforced)}`,
  ].join("\n")
  const write = (whole: string): string => {
    const documents = [{ schema, before, trigger: "<call>" }]
    const constraint = constraints.open({ kind: "lark", lark, documents })
    let at = 0
    for (const byte of Buffer.from(whole)) {
      if (!isAllowed(constraint.mask(), byte)) break
      constraint.accept(byte)
      at++
    }
    const isWhole = at === whole.length && constraint.isComplete()
    constraint.release()
    return whole.slice(0, at) + (isWhole ? "$" : "")
  }
  expect(write(text('{"a":[1,2]}'))).toBe(`${text('{"a":[1,2]}')}$`)
  expect(write(text('{"a":[1,1]}'))).toBe(`see <call>${before}{"a":[1,1`)
})

test("what is no JSON does not fail, and is free from there on", () => {
  const { guards } = analyseSchema({ type: "array", items: set })
  const answer = new GuardedAnswer([{ before: "see ", guards: guards! }])
  const after = answer.advance(answer.start, 'see [["C:\\dir"')
  expect(after).toBeDefined()
  expect(answer.advance(after!, ", see [[1,1],")).toBeDefined()
  expect(answer.advance(answer.start, "see [[1,1],")).toBeUndefined()
})

test("tokens count from where the outermost guarded value began, and are taken back", () => {
  const schema = {
    type: "object",
    properties: { before: { type: "string" }, sets: { type: "array", items: set } },
    required: ["before", "sets"],
    additionalProperties: false,
  }
  const constraint = constraints.open({ kind: "schema", schema })
  const counts = (text: string) =>
    [...Buffer.from(text)].map((byte) => {
      constraint.mask()
      constraint.accept(byte)
      return constraint.guardedTokens()
    })
  expect(counts('{"before":"ab","sets":[').every((count) => count === 0)).toBe(true)
  expect(counts("[1,2],[3")).toEqual([1, 2, 3, 4, 0, 0, 1, 2])
  constraint.rollback(4)
  expect(constraint.guardedTokens()).toBe(4)
  expect(counts("7],")).toEqual([5, 0, 0])
  constraint.rollback(1)
  expect(counts("]}")).toEqual([0, 0])
  expect(constraint.isComplete()).toBe(true)
  const whole = constraints.open({ kind: "schema", schema: set })
  expect(whole.guardedTokens()).toBe(0)
  whole.accept(0x5b)
  expect(whole.guardedTokens()).toBe(1)
})
