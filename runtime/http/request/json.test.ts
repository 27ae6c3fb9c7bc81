import { Effect, Exit } from "effect"
import {
  array,
  assert,
  constant,
  dictionary,
  json,
  nat,
  oneof,
  property,
  string,
  uint8Array,
} from "fast-check"
import { expect, test } from "vitest"
import { apiError } from "../../../core/errors.ts"
import { defaultBounds } from "../../../core/ports/endpoint.ts"
import { runs } from "../../../testing/property.ts"
import { JsonReader } from "./json.ts"

const readerOf = (more: object = {}) =>
  new JsonReader({
    bounds: defaultBounds,
    maxTextBytes: 50_000_000,
    tooMuchText: () => apiError("payload_too_large"),
    hashes: false,
    ...more,
  })

/** Reads the bytes in pieces that end at `cuts`. */
const read = (bytes: Buffer, cuts: readonly number[] = [], reader = readerOf()) =>
  Effect.suspend(() => {
    const ends = [...cuts, bytes.length].sort((a, b) => a - b)
    for (const [i, end] of ends.entries()) {
      const piece = bytes.subarray(ends[i - 1] ?? 0, end)
      const wrong = piece.length ? reader.push(piece) : undefined
      if (wrong) return Effect.fail(wrong)
    }
    return reader.end
  })
const parse = (bytes: Uint8Array, cuts?: readonly number[]) =>
  Effect.runSyncExit(read(Buffer.from(bytes), cuts))
const codeOf = (bytes: Buffer, reader?: JsonReader) =>
  Effect.runSync(Effect.flip(read(bytes, everyBytes(bytes), reader))).code
const everyBytes = (bytes: Uint8Array, step = 65_536) =>
  Array.from({ length: Math.floor(bytes.length / step) }, (_, i) => (i + 1) * step)

test("whatever JSON.parse takes comes out the same, wherever it is cut", () => {
  assert(
    property(
      oneof(json(), json({ stringUnit: "binary" }), constant('{"__proto__":1}')),
      array(nat(100)),
      (text, cuts) => {
        // JSON text in UTF-8 can't carry lone surrogates
        const wire = Buffer.from(text)
        expect(parse(wire, cuts)).toEqual(Exit.succeed(JSON.parse(wire.toString())))
        expect(parse(Buffer.concat([Buffer.from("\ufeff"), wire]), cuts)).toEqual(
          Exit.succeed(JSON.parse(wire.toString())),
        )
      },
    ),
  )
})

test("any bytes give a value or a 400, never a throw", () => {
  assert(
    property(uint8Array({ maxLength: 200 }), array(nat(200)), (bytes, cuts) => {
      const exit = parse(bytes, cuts)
      if (Exit.isFailure(exit))
        expect(["invalid_json", "invalid_request_error"]).toContain(codeOf(Buffer.from(bytes)))
    }),
  )
})

test("large strings come out the same, whatever they hold and wherever they are cut", () => {
  const pads = ['[{,\\"', "é😀中", "\n\u0001", "\\\\", "words and words ", "\ud83d\ude00"]
  assert(
    property(
      dictionary(string(), string()),
      nat(pads.length - 1),
      // a key of more than 64 kB is refused where it comes in pieces
      nat(60_000),
      nat(70_000),
      (fields, pad, shift, step) => {
        const long = pads[pad]!.repeat(60_000)
        const body = { [`x${"y".repeat(shift)}`]: 1, long, ...fields, list: [long], end: "\\" }
        const text = JSON.stringify(body).replaceAll("é", "\\u00e9")
        const bytes = Buffer.from(text)
        expect(parse(bytes, everyBytes(bytes, step + 30_000))).toEqual(
          Exit.succeed(JSON.parse(text)),
        )
      },
    ),
    { numRuns: runs(20) },
  )
})

test("`__proto__` with a large string is a key like any other", () => {
  const long = "x".repeat(400_000)
  const bytes = Buffer.from(`{"__proto__":"${long}","a":{"__proto__":["${long}"]}}`)
  const exit = parse(bytes, everyBytes(bytes))
  expect(exit).toEqual(Exit.succeed(JSON.parse(bytes.toString())))
})

test("bodies that would become many values are refused before they have arrived", () => {
  const half = 3_000_000
  for (const [text, code] of [
    ["[".repeat(half), "invalid_request_error"],
    [`[${"{},".repeat(half)}`, "invalid_request_error"],
    [`[${"1,".repeat(half)}`, "invalid_request_error"],
    [
      `{"z":{${Array.from({ length: 50_000 }, (_, i) => `"${i}":1`).join()}`,
      "invalid_request_error",
    ],
    [`["${"x".repeat(half)}`, "invalid_json"],
    [`["${"\u0001".repeat(half)}"]`, "invalid_json"],
    [`["${"\\x".repeat(half)}"]`, "invalid_json"],
    [`{"${"x".repeat(half)}":1}`, "invalid_request_error"],
  ] as const) {
    const bytes = Buffer.from(text)
    expect(codeOf(bytes)).toBe(code)
  }
})

test("text has a limit; data URIs are outside of it", () => {
  const limits = { maxTextBytes: 100_000 }
  const bytes = (text: string) => Buffer.from(JSON.stringify({ a: "x", text }))
  const fits = (text: string) =>
    Effect.runSync(read(bytes(text), everyBytes(bytes(text)), readerOf(limits)))
  const image = `data:image/png;base64,${"A".repeat(300_000)}`
  expect(fits(image)).toEqual({ a: "x", text: image })
  expect(codeOf(bytes(`x${image}`), readerOf(limits))).toBe("payload_too_large")
  // sounds come as plain base64
  const sound = { type: "input_audio", input_audio: { data: "QUJD".repeat(75_000), format: "wav" } }
  const body = Buffer.from(JSON.stringify({ content: [sound] }))
  expect(Effect.runSync(read(body, everyBytes(body), readerOf(limits)))).toEqual({
    content: [sound],
  })
  const texts = Buffer.from(JSON.stringify({ datas: "QUJD".repeat(75_000), data: ["AA"] }))
  expect(codeOf(texts, readerOf(limits))).toBe("payload_too_large")
  expect(codeOf(bytes("dat".repeat(50_000)), readerOf(limits))).toBe("payload_too_large")
})

test("a large body has a digest of its bytes, where one is wanted", () => {
  const digestOf = (text: string, hashes = true, cuts: readonly number[] = []) => {
    const reader = readerOf({ hashes })
    Effect.runSync(read(Buffer.from(text), cuts, reader))
    return reader.digest()
  }
  const large = JSON.stringify("x".repeat(100_000))
  expect(digestOf(large)).toMatch(/^.{44}$/)
  expect(digestOf(large, true, [5, 70_000])).toBe(digestOf(large))
  expect(digestOf(` ${large}`)).not.toBe(digestOf(large))
  expect([digestOf('"small"'), digestOf(large, false)]).toEqual([undefined, undefined])
})
