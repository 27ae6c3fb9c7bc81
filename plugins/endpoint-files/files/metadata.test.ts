import { Effect } from "effect"
import { describe, expect, it } from "vitest"
import { readMetadata } from "./metadata.ts"

const read = (fields: Readonly<Record<string, string>>) =>
  Effect.runPromise(
    Effect.match(readMetadata(new Map(Object.entries(fields))), {
      onSuccess: (metadata): unknown => metadata,
      onFailure: ({ code, param }) => [code, param],
    }),
  )
const many = (count: number) =>
  Object.fromEntries(Array.from({ length: count }, (_, n) => [`metadata[${n}]`, "x"]))

describe("metadata of a form", () => {
  it.each<[string, Readonly<Record<string, string>>, Readonly<Record<string, string>>]>([
    ["none", { purpose: "knowledge" }, {}],
    ["single fields", { "metadata[a]": "1", "metadata[b c]": "" }, { a: "1", "b c": "" }],
    ["JSON", { metadata: '{"a":"1"}' }, { a: "1" }],
    ["brackets in a key", { "metadata[a[0]]": "x" }, { "a[0]": "x" }],
    [
      "a key that objects inherit",
      { metadata: '{"__proto__":"x"}' },
      JSON.parse('{"__proto__":"x"}'),
    ],
    [
      "all that fits",
      { [`metadata[${"ж".repeat(64)}]`]: "🙂".repeat(512) },
      { ["ж".repeat(64)]: "🙂".repeat(512) },
    ],
  ])("%s", async (_, fields, metadata) => {
    expect(await read(fields)).toEqual(metadata)
  })

  it.each<[string, Readonly<Record<string, string>>, string]>([
    ["17 keys", many(17), "metadata"],
    ["both forms", { metadata: "{}", "metadata[a]": "1" }, "metadata"],
    ["no JSON", { metadata: "{a" }, "metadata"],
    ["a list", { metadata: "[]" }, "metadata"],
    ["a number", { metadata: '{"a":1}' }, "metadata.a"],
    ["an object in it", { metadata: '{"a":{}}' }, "metadata.a"],
    ["an object in a field", { "metadata[a][b]": "x" }, "metadata"],
    ["an empty key", { "metadata[]": "x" }, "metadata"],
    ["a long key", { [`metadata[${"x".repeat(65)}]`]: "" }, "metadata"],
    ["a long text", { "metadata[a]": "x".repeat(513) }, "metadata.a"],
    ["a hidden character in a key", { "metadata[a\nb]": "" }, "metadata"],
    ["a NUL", { "metadata[a]": "\0" }, "metadata"],
  ])("refuses %s", async (_, fields, param) => {
    expect(await read(fields)).toEqual(["invalid_request_error", param])
  })
})
