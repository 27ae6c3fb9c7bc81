import { expect, test } from "vitest"
import { makeBodyBudget, smallBodyBytes } from "./body-budget.ts"

const megabyte = 2 ** 20
const limits = { maxBufferedBytes: 8 * megabyte, maxBufferedBytesPerAccount: 5 * megabyte }

/** Opens bodies of `bytes` until one is refused. */
const fill = (budget: ReturnType<typeof makeBodyBudget>, account: string, bytes: number) => {
  for (let taken = 0; ; taken++) {
    const refusal = budget.open(account).grow(bytes)
    if (refusal) return { taken, code: refusal.code }
  }
}

test("an account takes at most half of the part of small bodies; others get the rest", () => {
  const budget = makeBodyBudget(limits)
  const half = megabyte / smallBodyBytes
  expect(fill(budget, "a", smallBodyBytes)).toEqual({ taken: half, code: "concurrency_exceeded" })
  expect(fill(budget, "", smallBodyBytes)).toEqual({ taken: half, code: "backend_busy" })
  // large ones have their own
  expect(budget.open("a").grow(megabyte)).toBeUndefined()
})

test("large bodies are bounded for an account and for all, and never lock out small ones", () => {
  const budget = makeBodyBudget(limits)
  expect(fill(budget, "a", megabyte)).toEqual({ taken: 5, code: "concurrency_exceeded" })
  expect(fill(budget, "b", megabyte)).toEqual({ taken: 3, code: "backend_busy" })
  expect(budget.open("b").grow(100)).toBeUndefined()
})

test("a body that grows takes its room with it, and gives all of it back", () => {
  const budget = makeBodyBudget(limits)
  const body = budget.open("a")
  expect([body.grow(smallBodyBytes), body.grow(3 * megabyte)]).toEqual([undefined, undefined])
  expect(budget.heldBytes()).toBe(3 * megabyte + smallBodyBytes)
  expect(fill(budget, "a", smallBodyBytes).taken).toBe(megabyte / smallBodyBytes)
  // a refused one keeps what it has
  expect(body.grow(2 * megabyte)?.code).toBe("concurrency_exceeded")
  body.release()
  expect(budget.heldBytes()).toBe(megabyte)
  expect(budget.open("a").grow(5 * megabyte)).toBeUndefined()
})
