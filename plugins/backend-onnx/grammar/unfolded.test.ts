import { expect, test } from "vitest"
import { unfoldedSize } from "./unfolded.ts"

test("counts atoms with their repetitions written out", () => {
  for (const [pattern, size] of [
    ["", 0],
    ["^abc$", 3],
    ["a{3}", 3],
    ["a{2,5}b*", 6],
    ["a{2,}", 2],
    ["(ab){10}", 20],
    ["(?:a|b{3}){1,4}c", 17],
    ["(?<year>\\d{4})-\\d{2}", 7],
    ["[a-z\\]{3}]{2}\\x{20}{3}", 5],
    ["\\p{L}{1,200}", 200],
    ["(([a-z]{1,100}){1,100}){1,100}", 1_000_000],
    ["((a{0}))", 1],
    ["a{0,}{2", 3],
    [")(", 1],
  ] as const)
    expect(unfoldedSize(pattern), pattern).toBe(size)
})
