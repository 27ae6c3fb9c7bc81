import { Result, Schema } from "effect"
import { expect, it } from "vitest"
import { Settings } from "./settings.ts"

it("takes an overlap of at most half of a chunk", () => {
  const decode = Schema.decodeUnknownResult(Settings)
  expect(Result.isSuccess(decode({}))).toBe(true)
  expect(Result.isSuccess(decode({ chunkCharacters: 400 }))).toBe(true)
  expect(Result.isSuccess(decode({ chunkCharacters: 399 }))).toBe(false)
  expect(Result.isSuccess(decode({ chunkCharacters: 9000, chunkOverlap: 4500 }))).toBe(true)
})
