import type { Json } from "../../../../core/json.ts"

/** Documents over few names and values, so that random schemas tell them apart. */
export const fewDocuments: readonly Json[] = [
  ...[
    null,
    true,
    false,
    0,
    1,
    2,
    -1,
    0.5,
    "",
    "a",
    "b",
    "ab",
    "ba",
    "abc",
    "1.2.3.4",
    "2024-02-29",
  ],
  ...[[], [0], [1], ["a"], [0, 1], [1, 1], ["a", 0], [0, 1, 2], [[]], [{ a: 0 }]],
  ...[{}, { a: 0 }, { a: 1 }, { a: "a" }, { a: "b" }, { a: null }, { b: 0 }, { b: "a" }, { c: 1 }],
  ...[
    { a: 0, b: 0 },
    { a: 1, b: "a" },
    { a: "a", b: 1 },
    { a: "b", c: 0 },
    { b: 1, c: "a" },
  ],
  ...[{ a: 0, b: 1, c: 2 }, { a: { a: 0 } }, { a: { b: 1 }, b: [0] }, { a: [], b: {} }],
]

/** `then` as a computed name: the linter takes it for a promise's. */
const [consequence] = ["then"] as const

type Make = (depth: number) => Readonly<Record<string, Json>>

/** Makes schemas of few keywords over the names and values of `fewDocuments`. */
export const randomSchemas = (random: () => number): (() => Json) => {
  const pick = <A>(list: readonly A[]): A => list[Math.floor(random() * list.length)]!
  const some = <A>(list: readonly A[]): readonly A[] => list.filter(() => random() < 0.4)
  const count = (most: number) => Math.floor(random() * (most + 1))
  const named = (names: readonly string[], depth: number) =>
    Object.fromEntries(names.map((name) => [name, schema(depth - 1)]))
  const list = (least: number, depth: number): Json =>
    Array.from({ length: least + count(2) }, () => schema(depth - 1))
  const types = ["null", "boolean", "integer", "number", "string", "array", "object"]
  const values = [null, true, 0, 1, 0.5, "a", "b", "ab", [], [0], {}, { a: 0 }]
  const names = ["a", "b", "c"]
  const leaves: readonly Make[] = [
    () => ({ type: pick(types) }),
    () => ({ type: [pick(types), pick(types)] }),
    () => ({ const: pick(values) }),
    () => ({ enum: [pick(values), pick(values), ...some(values)] }),
    () => ({ minimum: pick([0, 1]) }),
    () => ({ exclusiveMaximum: pick([0, 1, 2]) }),
    () => ({ maxLength: count(2) }),
    () => ({ minLength: count(2) }),
    () => ({ type: "string", pattern: pick(["^a", "b$", "^[ab]+$", "c"]) }),
    () => ({ type: "string", format: pick(["date", "ipv4", "ipv6", "email"]) }),
    () => ({ minItems: count(2) }),
    () => ({ maxItems: count(2) }),
    () => ({ required: [...new Set([pick(names), pick(names)])] }),
    () => ({ type: "object", required: [pick(names)] }),
    () => ({ minProperties: count(1) }),
  ]
  const inner: readonly Make[] = [
    (depth) => ({ properties: named(some(names), depth) }),
    (depth) => ({ type: "object", properties: named(some(names), depth), required: some(names) }),
    (depth) => ({ properties: named(some(names), depth), additionalProperties: false }),
    (depth) => ({ properties: named(some(names), depth), additionalProperties: schema(depth - 1) }),
    (depth) => ({ items: schema(depth - 1), maxItems: count(3) }),
    (depth) => ({ prefixItems: list(1, depth), items: false }),
    (depth) => ({ items: schema(depth - 1) }),
  ]
  const combined: readonly Make[] = [
    (depth) => ({ not: schema(depth - 1) }),
    (depth) => ({ oneOf: list(1, depth) }),
    (depth) => ({ anyOf: list(1, depth) }),
    (depth) => ({ allOf: list(1, depth) }),
    (depth) => ({ if: schema(depth - 1), [consequence]: schema(depth - 1) }),
    (depth) => ({
      if: schema(depth - 1),
      [consequence]: schema(depth - 1),
      else: schema(depth - 1),
    }),
    (depth) => ({
      allOf: ["a", "b"].map((value) => ({
        if: { properties: { a: { const: value } }, required: ["a"] },
        [consequence]: schema(depth - 1),
      })),
    }),
  ]
  const schema = (depth: number): Json => {
    if (random() < 0.04) return random() < 0.5
    const kinds = depth <= 0 ? [leaves] : [leaves, inner, combined, combined]
    const parts = Array.from({ length: 1 + count(1) }, () => pick(pick(kinds))(depth))
    return Object.assign({}, ...parts) as Json
  }
  return () => ({ ...(random() < 0.3 && { type: "object" }), ...pick(combined)(3) })
}
