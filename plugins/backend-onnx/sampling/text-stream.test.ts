import fc from "fast-check"
import { expect, test } from "vitest"
import { runs } from "../../../testing/property.ts"
import type { StopRange } from "./stop-scanner.ts"
import { TextStream } from "./text-stream.ts"

/** Feeds bytes in pieces and checks every returned piece of text. */
const read = (
  pieces: readonly Uint8Array[],
  stops: readonly string[],
  range?: StopRange,
): { readonly text: string; readonly stopped: boolean } => {
  const stream = new TextStream(stops, range)
  let text = ""
  for (const piece of pieces) {
    const scanned = stream.push(piece)
    text += scanned.text
    if (scanned.stopped) return { text, stopped: true }
  }
  const { text: last, stopped } = stream.end()
  return { text: text + last, stopped }
}

const cutAt = (bytes: Uint8Array, cuts: readonly number[]): readonly Uint8Array[] => {
  const edges = [
    0,
    ...[...cuts].map((cut) => cut % (bytes.length + 1)).sort((a, b) => a - b),
    bytes.length,
  ]
  return edges.slice(1).map((edge, i) => bytes.subarray(edges[i], edge))
}

const expected = (text: string, stops: readonly string[]) => {
  const found = stops
    .filter((stop) => stop !== "" && text.includes(stop))
    .map((stop) => ({ start: text.indexOf(stop), end: text.indexOf(stop) + stop.length }))
  const first = found.sort((a, b) => a.end - b.end || a.start - b.start)[0]
  return first ? { text: text.slice(0, first.start), stopped: true } : { text, stopped: false }
}

const fewLetters = fc.string({ unit: fc.constantFrom("a", "b", "é", "😀", "\n"), maxLength: 24 })

test("over every split into pieces: whole characters, and the text before the first stop string", () => {
  fc.assert(
    fc.property(
      fewLetters,
      fc.array(fc.string({ unit: fc.constantFrom("a", "b", "é", "😀"), maxLength: 4 }), {
        maxLength: 4,
      }),
      fc.array(fc.nat(), { maxLength: 12 }),
      (text, stops, cuts) => {
        expect(read(cutAt(Buffer.from(text), cuts), stops)).toEqual(expected(text, stops))
      },
    ),
    { numRuns: runs(2_000) },
  )
})

/** The same in a part of the text: from the end of `after` to where `until` begins. */
const expectedWithin = (text: string, stops: readonly string[], after: string, until: string) => {
  const from = text.indexOf(after) + after.length
  if (!text.includes(after)) return { text, stopped: false }
  const rest = text.slice(from)
  const { text: cut, stopped } = expected(rest, stops)
  const end = Math.min(
    ...stops
      .filter((stop) => stop !== "" && rest.includes(stop))
      .map((stop) => rest.indexOf(stop) + stop.length),
  )
  const isPast = until !== "" && rest.includes(until) && rest.indexOf(until) < end
  return stopped && !isPast
    ? { text: text.slice(0, from) + cut, stopped }
    : { text, stopped: false }
}

test("over every split: stop strings count only behind `after` and before `until`, and never in `until` itself", () => {
  const word = fc.string({ unit: fc.constantFrom("a", "b", "é"), maxLength: 3 })
  fc.assert(
    fc.property(
      fewLetters,
      fc.array(word, { maxLength: 3 }),
      word,
      word,
      fc.array(fc.nat(), { maxLength: 12 }),
      (text, stops, after, until, cuts) => {
        expect(read(cutAt(Buffer.from(text), cuts), stops, { after, until })).toEqual(
          expectedWithin(text, stops, after, until),
        )
      },
    ),
    { numRuns: runs(5_000) },
  )
  expect(
    read([Buffer.from("a <tool"), Buffer.from("_call> <tool")], ["<tool"], {
      until: "<tool_call>",
    }),
  ).toEqual({ text: "a <tool_call> <tool", stopped: false })
  expect(
    read([Buffer.from("a <tool"), Buffer.from("box>")], ["<tool"], { until: "<tool_call>" }),
  ).toEqual({ text: "a ", stopped: true })
  expect(read([Buffer.from("a <tool")], ["<tool"], { until: "<tool_call>" })).toEqual({
    text: "a ",
    stopped: true,
  })
})

test("one byte at a time", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary" }), (text) => {
      const bytes = Buffer.from(text)
      expect(
        read(
          Array.from(bytes, (byte) => Uint8Array.of(byte)),
          [],
        ).text,
      ).toBe(bytes.toString("utf8"))
    }),
  )
})

test("what may become a stop string waits, and comes out when it does not", () => {
  const stream = new TextStream(["END"])
  expect(stream.push(Buffer.from("the EN"))).toEqual({ text: "the ", stopped: false, heldBytes: 2 })
  expect(stream.push(Buffer.from("T"))).toEqual({ text: "ENT", stopped: false, heldBytes: 0 })
  expect(stream.push(Buffer.from(" E"))).toEqual({ text: " ", stopped: false, heldBytes: 1 })
  expect(stream.end()).toEqual({ text: "E", stopped: false, heldBytes: 0 })
})

test("bytes that are no UTF-8 become U+FFFD; half a character at the end is dropped; a byte order mark stays", () => {
  expect(read([Uint8Array.of(0x61, 0xff, 0x62)], [])).toEqual({ text: "a\ufffdb", stopped: false })
  expect(read([Uint8Array.of(0x61, 0xf0, 0x9f)], [])).toEqual({ text: "a", stopped: false })
  expect(read([Uint8Array.of(0xef, 0xbb), Uint8Array.of(0xbf, 0x61)], []).text).toBe("\ufeffa")
})
