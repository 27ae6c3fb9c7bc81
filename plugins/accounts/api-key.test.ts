import fc from "fast-check"
import { expect, it } from "vitest"
import { displayPrefix, isUsableKey, makeApiKey, modeOf, sha256Of } from "./api-key.ts"

it("makes keys of the documented form", () => {
  expect(makeApiKey("live")).toMatch(/^svc_live_[A-Za-z0-9]{32}$/)
  expect(makeApiKey("test")).toMatch(/^svc_test_[A-Za-z0-9]{32}$/)
  expect(new Set(Array.from({ length: 1000 }, () => makeApiKey("live"))).size).toBe(1000)
  for (const mode of ["live", "test"] as const) {
    expect(modeOf(makeApiKey(mode))).toBe(mode)
    expect(isUsableKey(makeApiKey(mode))).toBe(true)
  }
})

it("hashes with SHA-256", () => {
  expect(sha256Of("abc").toString("hex")).toBe(
    "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
  )
})

it("shows 12 characters of our keys, 4 of an operator's own", () => {
  const key = makeApiKey("live")
  expect(displayPrefix(key)).toBe(key.slice(0, 12))
  expect(displayPrefix("sixteen-chars-ok")).toBe("sixt")
})

it("takes 16 to 200 visible ASCII characters", () => {
  expect(["x".repeat(16), "x".repeat(200), "!~".repeat(10)].map(isUsableKey)).toEqual([
    true,
    true,
    true,
  ])
  expect(
    [
      "",
      "x".repeat(15),
      "x".repeat(201),
      "with a space in it",
      "é".repeat(20),
      `${"x".repeat(20)}\n`,
    ].map(isUsableKey),
  ).toEqual(Array(6).fill(false))
  fc.assert(
    fc.property(fc.string({ unit: "binary", maxLength: 220 }), (text) => {
      const visible = [...text].every((c) => c >= "!" && c <= "~")
      expect(isUsableKey(text)).toBe(visible && text.length >= 16 && text.length <= 200)
    }),
  )
})
