import { expect, it } from "vitest"
import { giveUpAfterMs, isOver, outcomeOf } from "./retry-schedule.ts"

it("a first attempt is made however late, and is the only one after 2 hours", () => {
  const round = { tries: 0, beganMs: 0, once: false }
  expect(isOver(round, giveUpAfterMs * 10)).toBe(false)
  expect([
    isOver({ ...round, tries: 1 }, giveUpAfterMs - 1),
    isOver({ ...round, tries: 1 }, giveUpAfterMs),
  ]).toEqual([false, true])
  expect(outcomeOf(round, false, giveUpAfterMs - 1, () => 0)).toEqual({
    state: "pending",
    waitMs: 5_000,
  })
  expect(outcomeOf(round, false, giveUpAfterMs, () => 0)).toEqual({ state: "giveup" })
  expect(outcomeOf(round, true, giveUpAfterMs * 10, () => 0)).toEqual({ state: "succeeded" })
})

it("waits are the contract's, and up to a fifth more", () => {
  for (const [tries, waitMs] of [5_000, 30_000, 300_000, 1_800_000].entries())
    for (const dice of [0, 0.5, 0.999999]) {
      const outcome = outcomeOf({ tries, beganMs: 0, once: false }, false, 0, () => dice)
      expect(outcome).toEqual({ state: "pending", waitMs: expect.any(Number) })
      if (outcome.state !== "pending") continue
      expect(outcome.waitMs).toBeGreaterThanOrEqual(waitMs)
      expect(outcome.waitMs).toBeLessThanOrEqual(waitMs * 1.2)
    }
})
