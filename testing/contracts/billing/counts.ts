import { Effect } from "effect"
import { expect, it } from "vitest"
import { uuidV7 } from "../../../core/services/ids.ts"
import { type BillingDriver, reasonOf } from "./driver.ts"

/** What counts toward which limit. */
export const countCases = (driver: () => BillingDriver): void => {
  it("gives back what a call counted when the backend refused it, and only then", async () => {
    const limits = { rpm: 2, rpd: 2, concurrency: 2 }
    const [first, second] = [await driver().admit({ limits }), await driver().admit({ limits })]
    await driver().settle(first.id, "refused")
    const third = await driver().admit({ limits })
    expect(third.rate).toEqual({ limit: 2, remaining: 0, resetMs: 60_000 })
    expect(await reasonOf(driver().admit({ limits }))).toBe("rpm")
    await driver().settle(second.id, "voided")
    await driver().settle(first.id, "refused")
    expect(await reasonOf(driver().admit({ limits }))).toBe("rpm")
    driver().open.clock.advance(60_000)
    expect(await reasonOf(driver().admit({ limits }))).toBe("rpd")
    await driver().settle(third.id, "refused")
    expect(await reasonOf(driver().admit({ limits }))).toBeUndefined()
  })

  it("a dry run counts toward RPM only", async () => {
    const limits = { rpm: 2, rpd: 0, concurrency: 0 }
    expect((await driver().admit({ counts: "rpm", limits })).rate?.remaining).toBe(1)
    expect((await driver().admit({ counts: "rpm", limits })).rate?.remaining).toBe(0)
    expect(await reasonOf(driver().admit({ counts: "rpm", limits }))).toBe("rpm")
    expect(
      await reasonOf(driver().admit({ limits: { rpm: 3, rpd: 1, concurrency: 1 } })),
    ).toBeUndefined()
  })

  it("a look counts nothing and is never refused", async () => {
    const limits = { rpm: 0, rpd: 0, concurrency: 0 }
    expect((await driver().admit({ counts: "peek", limits })).rate).toEqual({
      limit: 0,
      remaining: 0,
      resetMs: 0,
    })
    await driver().admit()
    driver().open.clock.advance(20_000)
    expect((await driver().admit({ counts: "peek" })).rate).toEqual({
      limit: 60,
      remaining: 59,
      resetMs: 40_000,
    })
    expect((await driver().admit({ counts: "peek" })).rate?.remaining).toBe(59)
  })

  it("a batch line skips RPM, RPD and concurrency", async () => {
    await driver().grant(100n)
    const limits = { rpm: 0, rpd: 0, concurrency: 0 }
    expect((await driver().admit({ counts: "money", limits, holdMicros: 1n })).rate).toBeDefined()
    expect((await driver().admit({ counts: "peek" })).rate?.remaining).toBe(60)
  })

  it("a free call and a test key need no balance", async () => {
    const limits = { monthlyCapMicros: 1n }
    expect(await reasonOf(driver().admit({ limits }))).toBeUndefined()
    expect(await reasonOf(driver().admit({ limits, mode: "test", holdMicros: 5n }))).toBeUndefined()
  })

  it("takes settlements of unknown calls, and none at all, without complaint", async () => {
    await driver().settle(uuidV7(0))
    await Effect.runPromise(driver().open.billing.settle([]))
    await Effect.runPromise(driver().open.billing.voidChildren("no-such-batch"))
  })
}
