import fc from "fast-check"
import { expect, it } from "vitest"
import { makeIds, randomText, uuidV7 } from "./ids.ts"

it("a call's id is a UUIDv7 whose order is that of time", () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 0, max: 2 ** 47 }),
      fc.integer({ min: 1, max: 1e9 }),
      (nowMs, laterMs) => {
        const id = uuidV7(nowMs)
        expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
        expect(Number.parseInt(id.replaceAll("-", "").slice(0, 12), 16)).toBe(nowMs)
        expect(id < uuidV7(nowMs + laterMs)).toBe(true)
      },
    ),
  )
})

it("ids have their prefix, 24 characters of 62, and don't repeat", () => {
  const ids = makeIds(() => 0)
  const made = new Set(Array.from({ length: 2000 }, () => ids.make("chatcmpl-")))
  expect(made.size).toBe(2000)
  for (const id of made) expect(id).toMatch(/^chatcmpl-[0-9A-Za-z]{24}$/)
})

it("random text has the asked length and all characters about equally often", () => {
  expect([0, 1, 24, 100].map((length) => randomText(length).length)).toEqual([0, 1, 24, 100])
  const counts = new Map<string, number>()
  for (const char of randomText(62_000)) counts.set(char, (counts.get(char) ?? 0) + 1)
  expect(counts.size).toBe(62)
  // 1,000 expected, standard deviation 31
  for (const n of counts.values()) expect(Math.abs(n - 1000)).toBeLessThan(250)
})
