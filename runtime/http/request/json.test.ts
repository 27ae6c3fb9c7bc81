import { Effect, Exit } from "effect"
import { assert, constant, dictionary, json, oneof, property, string, uint8Array } from "fast-check"
import { expect, test } from "vitest"
import { runs } from "../../../testing/property.ts"
import { parseJson } from "./json.ts"

const parse = (bytes: Uint8Array) => Effect.runSyncExit(parseJson(bytes))
const codeOf = (bytes: Uint8Array) => Effect.runSync(Effect.flip(parseJson(bytes))).code

test("whatever JSON.parse takes comes out the same", () => {
  assert(
    property(oneof(json(), json({ stringUnit: "binary" }), constant('{"__proto__":1}')), (text) => {
      // JSON text in UTF-8 can't carry lone surrogates
      const wire = Buffer.from(text)
      expect(parse(wire)).toEqual(Exit.succeed(JSON.parse(wire.toString())))
    }),
  )
})

test("any bytes give a value or a 400, never a throw", () => {
  assert(
    property(uint8Array({ maxLength: 200 }), (bytes) => {
      const exit = parse(bytes)
      if (Exit.isFailure(exit))
        expect(["invalid_json", "invalid_request_error"]).toContain(codeOf(bytes))
    }),
  )
})

test("strings don't count as values, whatever they hold: large bodies of text pass", () => {
  const pad = '[{,\\"'.repeat(300_000)
  assert(
    property(dictionary(string(), string()), (fields) => {
      const body = { pad, ...fields, end: "\\" }
      expect(parse(Buffer.from(JSON.stringify(body)))).toEqual(
        Exit.succeed(JSON.parse(JSON.stringify(body))),
      )
    }),
    { numRuns: runs(20) },
  )
})

test("bodies that would become millions of values are refused before they are parsed", () => {
  const half = 3_000_000
  expect(codeOf(Buffer.from("[".repeat(half) + "]".repeat(half)))).toBe("invalid_request_error")
  expect(codeOf(Buffer.from(`[${"{},".repeat(half)}{}]`))).toBe("invalid_request_error")
  expect(codeOf(Buffer.from(`["${"x".repeat(half)}`))).toBe("invalid_json")
})
