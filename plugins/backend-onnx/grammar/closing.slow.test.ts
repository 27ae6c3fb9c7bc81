import { describe, expect, test } from "vitest"
import type { Json } from "../../../core/json.ts"
import { ClosingTokens } from "./closing-tokens.ts"
import { Closings } from "./closings.ts"
import type { Grammar } from "./constraint.ts"
import { bytesOfToken, byteVocabulary, grammarVocabulary } from "./grammar-vocabulary.ts"
import { textOf } from "./testing/walk.ts"

const vocabulary = byteVocabulary()
const closings = new Closings(vocabulary)
let opened = 0

const closed = (grammar: Grammar, text: string, most: number): string | undefined => {
  const id = opened++
  closings.open(id, grammar)
  const found = closings.find(id, 0, [...Buffer.from(text)], most)
  closings.release(id)
  return found && textOf(vocabulary, found)
}
const shortest = (schema: Json, most: number, text = "") =>
  closed({ kind: "schema", schema }, text, most)

const object = (properties: Readonly<Record<string, Json>>): Json => ({
  type: "object",
  properties,
  required: Object.keys(properties),
  additionalProperties: false,
})
const many = Object.fromEntries(Array.from({ length: 30 }, (_, i) => [`p${i}`, { type: "string" }]))

describe("the shortest completion", () => {
  test("ends a number that zeros alone don't end", () => {
    const numbers = object({ a: { type: "number" }, b: { type: "number" } })
    expect(shortest(numbers, 400, '{"a":-0')).toBe('.01,"b":0}')
    expect(shortest(numbers, 400, `{"a":-0.${"0".repeat(60)}`)).toMatch(/^0?1,"b":0\}$/)
  })

  test("is not the one that the first short step leads to", () => {
    const kinds: Json = {
      anyOf: [object({ kind: { const: "a" }, ...many }), object({ kind: { const: "b" } })],
    }
    expect(shortest(kinds, 14)).toBe('{"kind":"b"}')
    expect(shortest(kinds, 14, '{"kind": ')).toBe('"b"}')
    expect(shortest(kinds, 20, '{"kind":"a"')).toBeUndefined()
    const values: Json = { anyOf: [object(many), { type: "array", minItems: 9 }, { const: 1234 }] }
    expect(shortest(values, 6)).toBe("1234")
  })

  test("is made of many short parts, where each first one is long", () => {
    const list = object({
      list: { type: "array", minItems: 3, items: { enum: ["alphabetical", "beta", "z"] } },
    })
    expect(shortest(list, 22)).toBe('{"list":["z","z","z"]}')
    expect(shortest(list, 21)).toBeUndefined()
    expect(shortest(list, 30, '{"list":["beta","al')).toBe('phabetical","z"]}')
  })

  test("fulfils what a pattern asks for", () => {
    for (const [pattern, length] of [
      ["\\d\\.\\w", 5],
      ["^a*b$", 3],
      ["^(x{40}|y[a-z]{3}!)$", 7],
    ] as const) {
      const text = shortest({ type: "string", pattern }, 40)!
      expect(JSON.parse(text)).toMatch(new RegExp(pattern))
      expect(text).toHaveLength(length)
    }
    expect(closed({ kind: "lark", lark: "start: /(?:ab){3,}c|x{20}/" }, "ab", 8)).toBe("ababc")
  })

  test("ends free text where the grammar goes on with a literal", () => {
    const lark = (text: string): Grammar => ({ kind: "lark", lark: text })
    const story = lark('start: "<story>" /[^<]{1,2000}/ "</story>"')
    expect(closed(story, "<story>Once ", 8)).toBe("</story>")
    expect(closed(story, "<story>Once ", 7)).toBeUndefined()
    const lines = lark('start: line+ "."\nline: "- " /[^\\n]+/ "\\n"')
    expect(closed(lines, "- one", 400)).toBe("\n.")
    expect(closed(lark("start: /\\x{5b}[^\\x{23}]{3,900}\\x{23}END/"), "[abc", 400)).toBe("#END")
    const mixed = lark('start: "<" %json {"type":"string"} ">"')
    expect(closed(mixed, '<"a', 9)).toBe('">')
  })

  test("keeps to what is checked on finished values", () => {
    const set: Json = {
      type: "array",
      items: object({ a: { enum: [1, 2] }, b: { type: "boolean" } }),
      uniqueItems: true,
      minItems: 3,
    }
    const items = JSON.parse(shortest(set, 100)!) as readonly Json[]
    expect(new Set(items.map((item) => JSON.stringify(item))).size).toBe(3)
    const some: Json = {
      type: "array",
      items: { type: "string", pattern: "^[ab]{1,3}$" },
      contains: { type: "string", pattern: "b" },
    }
    expect(shortest(some, 7)).toBe('["b"]')
    expect(shortest(some, 8, '["a"')).toBe(',"b"]')
  })

  test("is none where none fits, after a bounded search", () => {
    expect(shortest({ type: "array", minItems: 1e9 }, 100)).toBeUndefined()
    expect(shortest({ type: "string", minLength: 5_000 }, 100)).toBeUndefined()
    expect(shortest({ type: "string", minLength: 3_000 }, 3_100)).toHaveLength(3_002)
  })

  test("is the same again, and follows an answer that goes on and goes back", () => {
    const id = opened++
    closings.open(id, { kind: "schema", schema: object({ a: { type: "integer" }, b: {} }) })
    const find = (kept: number, more: string) =>
      textOf(vocabulary, closings.find(id, kept, [...Buffer.from(more)], 60)!)
    const first = find(0, "")
    expect(JSON.parse(first)).toMatchObject({ a: expect.any(Number) })
    expect(find(0, '{"a":12')).toMatch(/^,"b":/)
    expect(find(5, "34,")).toMatch(/^"b":/)
    expect(find(0, "")).toBe(first)
    closings.release(id)
    expect(closings.find(id, 0, [], 60)).toBeUndefined()
  })
})

describe("tokens of a completion", () => {
  const texts = ["", "a", "b", "c", '"', "}", "ab", "bc", 'abc"', '"}', "abcabc"]
  const words = grammarVocabulary(texts.length, (id) => Buffer.from(texts[id]!), [0])
  const tokens = new ClosingTokens(words)
  const spelled = (text: string) =>
    tokens.spell([...text].map((char) => texts.indexOf(char))).map((id) => texts[id])

  test("are as few as possible", () => {
    expect(spelled('abcabc"}')).toEqual(["abcabc", '"}'])
    expect(spelled('cabc"}')).toEqual(["c", 'abc"', "}"])
    expect(spelled("")).toEqual([])
  })

  test("are searched as single bytes; what has no text stays itself", () => {
    expect(tokens.split(texts.indexOf("abcabc"))).toEqual([1, 2, 3, 1, 2, 3])
    expect(tokens.split(0)).toEqual([0])
    expect(texts.map((_, id) => bytesOfToken(tokens.singleBytes, id).length)).toEqual([
      0, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0,
    ])
    const without = new ClosingTokens(
      grammarVocabulary(2, (id) => Buffer.from(id ? "xy" : ""), [0]),
    )
    expect(without.split(1)).toBeUndefined()
  })
})
