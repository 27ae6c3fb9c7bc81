import { expect, test } from "vitest"
import type { Json } from "../../../../../core/json.ts"
import { SchemaDocument } from "../document.ts"
import { areDisjoint } from "./disjoint.ts"

const apart = (a: Json, b: Json, $defs: Json = {}): boolean => {
  const document = new SchemaDocument({ oneOf: [a, b], $defs })
  return areDisjoint(
    document,
    document.at(document.root, "oneOf", 0),
    document.at(document.root, "oneOf", 1),
  )
}
const tagged = (tag: string, more = {}) => ({
  type: "object",
  properties: { tag: { const: tag } },
  required: ["tag"],
  ...more,
})

test("what can't both hold is seen", () => {
  for (const [a, b] of [
    [{ type: "string" }, { type: ["integer", "null"] }],
    [{ const: 1 }, { enum: [2, "1"] }],
    [{ enum: ["a", "b"] }, { type: "string", minLength: 2 }],
    [
      { type: "integer", maximum: 3 },
      { type: "number", exclusiveMinimum: 3 },
    ],
    [
      { type: "string", maxLength: 3 },
      { type: "string", minLength: 4 },
    ],
    [tagged("a"), tagged("b")],
    [{ $ref: "#/$defs/a" }, { allOf: [tagged("b"), { required: ["x"] }] }],
    [
      { type: "object", required: ["a"] },
      { type: "object", properties: { b: {} }, additionalProperties: false },
    ],
    [{ anyOf: [{ type: "string" }, { type: "null" }] }, { type: "array" }],
  ]) {
    expect(apart(a, b, { a: tagged("a") }), JSON.stringify([a, b])).toBe(true)
    expect(apart(b, a, { a: tagged("a") }), JSON.stringify([b, a])).toBe(true)
  }
})

test("what may both hold is not said to be apart", () => {
  for (const [a, b] of [
    [{ type: "integer" }, { type: "number" }],
    [
      { type: "integer", maximum: 3 },
      { type: "integer", minimum: 3 },
    ],
    [{ required: ["a"] }, { required: ["b"] }],
    [
      { type: "object", properties: { tag: { const: "a" } } },
      { type: "object", properties: { tag: { const: "b" } } },
    ],
    [
      { properties: { tag: { const: "a" } }, required: ["tag"] },
      { properties: { tag: { const: "b" } }, required: ["tag"] },
    ],
    [{ minLength: 4 }, { maxLength: 3 }],
    [
      { type: "string", pattern: "^a" },
      { type: "string", pattern: "^b" },
    ],
    [{ $ref: "#/$defs/loop" }, { type: "string" }],
  ]) {
    expect(apart(a, b, { loop: { $ref: "#/$defs/loop" } }), JSON.stringify([a, b])).toBe(false)
    expect(apart(b, a, { loop: { $ref: "#/$defs/loop" } }), JSON.stringify([b, a])).toBe(false)
  }
})
