import { expect, it } from "vitest"
import { type BillingDriver, reasonOf } from "./driver.ts"

/** Requests per minute and day, concurrency, and which is checked first. */
export const limitCases = (driver: () => BillingDriver): void => {
  it("counts down the rolling minute, exactly", async () => {
    const limits = { rpm: 2 }
    expect((await driver().admit({ limits })).rate).toEqual({
      limit: 2,
      remaining: 1,
      resetMs: 60_000,
    })
    driver().open.clock.advance(10_000)
    expect((await driver().admit({ limits })).rate).toEqual({
      limit: 2,
      remaining: 0,
      resetMs: 60_000,
    })
    driver().open.clock.advance(5_000)
    expect((await driver().admit({ limits })).refused).toMatchObject({
      reason: "rpm",
      retryAfterMs: 45_000,
      rate: { limit: 2, remaining: 0, resetMs: 55_000 },
    })
    driver().open.clock.advance(44_999)
    expect((await driver().admit({ limits })).refused).toMatchObject({
      reason: "rpm",
      retryAfterMs: 1,
    })
    driver().open.clock.advance(1)
    expect((await driver().admit({ limits })).rate).toEqual({
      limit: 2,
      remaining: 0,
      resetMs: 60_000,
    })
    expect(await reasonOf(driver().admit({ limits }))).toBe("rpm")
  })

  it("lets exactly rpm of many parallel calls in", async () => {
    expect(await driver().flood(90, { limits: { rpm: 60, concurrency: 100 } })).toBe(60)
  })

  it("lets exactly as many in as there are slots, and again after they are free", async () => {
    const limits = { concurrency: 3, rpm: 1000 }
    expect(await driver().flood(20, { limits: { concurrency: 2, rpm: 1000 } })).toBe(2)
    const third = await driver().admit({ limits })
    expect(third.refused).toBeUndefined()
    expect((await driver().admit({ limits })).refused).toMatchObject({
      reason: "concurrency",
      retryAfterMs: 1000,
    })
    await driver().settle(third.id)
    expect((await driver().admit({ limits })).refused).toBeUndefined()
  })

  it("counts a day in UTC", async () => {
    const limits = { rpd: 1 }
    await driver().admit({ limits })
    expect((await driver().admit({ limits })).refused).toMatchObject({
      reason: "rpd",
      retryAfterMs: 12 * 3_600_000,
    })
    driver().open.clock.advance(12 * 3_600_000 - 1)
    expect(await reasonOf(driver().admit({ limits }))).toBe("rpd")
    driver().open.clock.advance(1)
    expect(await reasonOf(driver().admit({ limits }))).toBeUndefined()
  })

  it("checks RPM, then RPD, then concurrency", async () => {
    await driver().admit()
    expect(await reasonOf(driver().admit({ limits: { rpm: 1, rpd: 1, concurrency: 1 } }))).toBe(
      "rpm",
    )
    expect(await reasonOf(driver().admit({ limits: { rpd: 1, concurrency: 1 } }))).toBe("rpd")
    expect(await reasonOf(driver().admit({ limits: { concurrency: 1 } }))).toBe("concurrency")
    expect(await reasonOf(driver().admit({ limits: { rpm: 0, rpd: 0, concurrency: 0 } }))).toBe(
      "rpm",
    )
  })

  it("does not count refused calls", async () => {
    await driver().flood(5, { limits: { concurrency: 1 } })
    expect((await driver().admit({ limits: { rpm: 3, rpd: 2 } })).rate?.remaining).toBe(1)
  })
}
