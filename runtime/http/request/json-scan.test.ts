import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { defaultBounds, maxDepth } from "../../../core/ports/endpoint.ts"
import { JsonScan } from "./json-scan.ts"

const unbounded = { keys: 1e9, keysOfObject: 1e9, values: 1e9, elements: 1e9 }

interface Counts {
  keys: number
  values: number
  elements: number
}

/** The naive count: of the parsed value. */
const countOf = (json: unknown, found: Counts = { keys: 0, values: 0, elements: 0 }): Counts => {
  if (typeof json === "string") found.values++
  if (typeof json !== "object" || json === null) return found
  found.values++
  const children = Object.values(json)
  found.elements += Math.max(0, children.length - 1)
  if (!Array.isArray(json)) {
    found.keys += children.length
    found.values += children.length
  }
  for (const child of children) countOf(child, found)
  return found
}

const mediaIn = (json: unknown, isKeyed = false): number => {
  // the closing quote counts too
  if (typeof json === "string")
    return isKeyed || json.startsWith("data:") ? JSON.stringify(json).length - 1 : 0
  if (typeof json !== "object" || json === null) return 0
  if (Array.isArray(json)) return json.reduce((sum: number, child) => sum + mediaIn(child), 0)
  return Object.entries(json).reduce(
    (sum, [name, child]) => sum + mediaIn(name) + mediaIn(child, name === "data"),
    0,
  )
}

const value = fc.oneof(
  fc.jsonValue(),
  fc.dictionary(
    fc.oneof(fc.string(), fc.constantFrom("data", "dat", "data ")),
    fc.constantFrom("data:image/png;base64,AA==", 'data:"\\', "data", "", ["data"], { data: "AA" }),
  ),
  fc.array(fc.constantFrom("\\", '"', "{[,:]}", "\\\\", "data:\\\\", 5, null, {}, [])),
)
const text = fc
  .tuple(value, fc.nat(3))
  .map(([json, indent]) => JSON.stringify(json, null, indent) ?? "null")

describe("what a JSON text holds", () => {
  it("is counted as in the parsed value", () => {
    fc.assert(
      fc.property(text, (json) => {
        const { keys, values, elements, inString, mediaCharacters } = scanned([json])
        expect({ keys, values, elements }).toEqual(countOf(JSON.parse(json)))
        expect([inString, mediaCharacters]).toEqual([false, mediaIn(JSON.parse(json))])
      }),
    )
  })

  it("is the same in pieces", () => {
    fc.assert(
      fc.property(text, fc.array(fc.nat(200), { maxLength: 8 }), (json, cuts) => {
        const ends = [...cuts.sort((a, b) => a - b), json.length]
        const pieces = ends.map((end, i) => json.slice(ends[i - 1] ?? 0, end))
        fc.pre(pieces.every((piece) => !piece.endsWith("\\")))
        const { mediaCharacters: media, ...counts } = scanned([json])
        const { mediaCharacters, ...found } = scanned(pieces)
        expect(found).toEqual(counts)
        // `da` and `ta:` apart are counted as text
        expect(media - mediaCharacters).toBeGreaterThanOrEqual(0)
        expect(media - mediaCharacters).toBeLessThanOrEqual(5 * pieces.length)
      }),
    )
  })

  it("has a bound for each kind, and none is met by ordinary bodies", () => {
    const { keys, keysOfObject, values, elements } = defaultBounds
    const object = (count: number) =>
      `{${Array.from({ length: count }, (_, i) => `"k${i}":{}`).join()}}`
    const array = (count: number, one: string) => `[${Array(count).fill(one).join()}]`
    expect(excessOf(object(keysOfObject))).toBeUndefined()
    expect(excessOf(object(keysOfObject + 1))).toBe("has an object of more than 10,000 keys")
    expect(excessOf(array(4, object(keys / 4)))).toBeUndefined()
    expect(excessOf(array(5, object(keys / 4)))).toBe("has more than 40,000 keys")
    expect(excessOf(array(values - 1, '""'))).toBeUndefined()
    expect(excessOf(array(values, '""'))).toContain("100,000 objects, arrays and strings")
    expect(excessOf(array(elements + 1, "1"))).toBeUndefined()
    expect(excessOf(array(elements + 2, "1"))).toBe("has more than 100,000 values")
    const nested = (levels: number) => "[".repeat(levels) + "]".repeat(levels)
    expect(excessOf(nested(maxDepth))).toBeUndefined()
    expect(excessOf(nested(maxDepth + 1))).toBe("is nested deeper than 100 levels")
    expect(excessOf(JSON.stringify({ text: '{"a":[1,2]},'.repeat(1_000_000) }))).toBeUndefined()
  })
})

const excessOf = (text: string) => {
  const scan = new JsonScan(defaultBounds)
  scan.push(text)
  return scan.excess
}

const scanned = (pieces: readonly string[]) => {
  const scan = new JsonScan(unbounded)
  for (const piece of pieces) scan.push(piece)
  const { keys, values, elements, inString, mediaCharacters } = scan
  return { keys, values, elements, inString, mediaCharacters }
}
