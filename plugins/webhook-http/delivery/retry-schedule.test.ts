import { expect, it } from "vitest"
import { giveUpAfterMs, isOver, verdictOf } from "./retry-schedule.ts"

it("a first attempt is made however late, and is the only one after 2 hours", () => {
  const round = { tries: 0, beganMs: 0, once: false }
  expect(isOver(round, giveUpAfterMs * 10)).toBe(false)
  expect([
    isOver({ ...round, tries: 1 }, giveUpAfterMs - 1),
    isOver({ ...round, tries: 1 }, giveUpAfterMs),
  ]).toEqual([false, true])
  expect(verdictOf(round, false, giveUpAfterMs - 1, () => 0)).toEqual({
    state: "pending",
    waitMs: 5_000,
  })
  expect(verdictOf(round, false, giveUpAfterMs, () => 0)).toEqual({ state: "giveup" })
  expect(verdictOf(round, true, giveUpAfterMs * 10, () => 0)).toEqual({ state: "succeeded" })
})

it("waits are the contract's, and up to a fifth more", () => {
  for (const [tries, waitMs] of [5_000, 30_000, 300_000, 1_800_000].entries())
    for (const dice of [0, 0.5, 0.999999]) {
      const verdict = verdictOf({ tries, beganMs: 0, once: false }, false, 0, () => dice)
      expect(verdict).toEqual({ state: "pending", waitMs: expect.any(Number) })
      if (verdict.state !== "pending") continue
      expect(verdict.waitMs).toBeGreaterThanOrEqual(waitMs)
      expect(verdict.waitMs).toBeLessThanOrEqual(waitMs * 1.2)
    }
})
