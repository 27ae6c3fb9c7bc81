import fc from "fast-check"
import { expect, it } from "vitest"
import { runs } from "../../../testing/index.ts"
import { EventStreamParser } from "./event-stream.ts"

const read = (pieces: readonly Uint8Array[], maxBytes = 1e6): readonly string[] => {
  const parser = new EventStreamParser(maxBytes)
  return [...pieces.flatMap((piece) => parser.push(piece)), ...parser.end()]
}

it("reads the same events wherever the bytes are cut, and however lines end", () => {
  const line = fc
    .string({ unit: "binary", maxLength: 20 })
    .map((text) => text.replace(/[\r\n\ufeff]/g, ""))
  fc.assert(
    fc.property(
      fc.array(
        line.filter((text) => text !== ""),
        { maxLength: 8 },
      ),
      fc.constantFrom("\n", "\r\n", "\r"),
      fc.array(fc.nat(400), { maxLength: 12 }),
      (data, end, cuts) => {
        const text = data.map((one) => `: ping${end}data: ${one}${end}id: 7${end}${end}`).join("")
        const bytes = Buffer.from(text)
        const at = [0, ...cuts.sort((a, b) => a - b), bytes.length]
        const pieces = at.slice(1).map((to, index) => bytes.subarray(at[index], to))
        expect(read(pieces)).toEqual(data.map((one) => Buffer.from(one).toString()))
      },
    ),
    { numRuns: runs(40) },
  )
})

it("joins lines of one event, and returns the one that the end cuts off", () => {
  expect(read([Buffer.from("data: a\ndata:b\n\ndata: c")])).toEqual(["a\nb", "c"])
})

it("refuses an event that is too large, not many small ones", () => {
  expect(read([Buffer.from("data: 1234\n\n".repeat(100))], 20)).toHaveLength(100)
  expect(() => read([Buffer.from(`data: ${"1".repeat(30)}`)], 20)).toThrow("an event has more than")
})
