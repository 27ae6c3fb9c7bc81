import { randomUUID } from "node:crypto"
import { Effect, Exit } from "effect"
import { expect, it } from "vitest"
import { type BillingDriver, reasonOf } from "./driver.ts"

/** Monthly caps, batches and grants. */
export const capCases = (driver: () => BillingDriver): void => {
  it("parallel calls can't go over the monthly cap", async () => {
    await driver().grant(1000n)
    expect(
      await driver().flood(200, {
        holdMicros: 3n,
        limits: { rpm: 1000, concurrency: 1000, monthlyCapMicros: 32n },
      }),
    ).toBe(10)
  })

  it("checks the cap before the balance, and both after concurrency", async () => {
    const limits = { concurrency: 1, monthlyCapMicros: 5n }
    expect(await reasonOf(driver().admit({ holdMicros: 6n, limits }))).toBe("monthly_cap")
    expect(await reasonOf(driver().admit({ holdMicros: 5n, limits }))).toBe("balance")
    await driver().admit({ limits })
    expect(await reasonOf(driver().admit({ holdMicros: 6n, limits }))).toBe("concurrency")
  })

  it("a cap counts what was spent and held this UTC month; 0 is none", async () => {
    const limits = { monthlyCapMicros: 10n }
    await driver().grant(1000n)
    await driver().settle((await driver().admit({ holdMicros: 10n, limits })).id, "settled", 4n)
    await driver().admit({ holdMicros: 6n, limits })
    const untilFebruary = Date.UTC(2026, 1, 1) - driver().open.clock.nowMs()
    expect((await driver().admit({ holdMicros: 1n, limits })).refused).toMatchObject({
      reason: "monthly_cap",
      retryAfterMs: untilFebruary,
    })
    expect(
      await reasonOf(driver().admit({ holdMicros: 1n, limits: { monthlyCapMicros: 0n } })),
    ).toBeUndefined()
    driver().open.clock.advance(untilFebruary)
    expect(await reasonOf(driver().admit({ holdMicros: 10n, limits }))).toBeUndefined()
    expect(await reasonOf(driver().admit({ holdMicros: 1n, limits }))).toBe("monthly_cap")
  })

  it("says what a key has spent this UTC month: what is settled, not what is held", async () => {
    await driver().grant(1000n)
    expect(await driver().spent()).toBe(0n)
    const [open, late] = [
      await driver().admit({ holdMicros: 10n }),
      await driver().admit({ holdMicros: 20n }),
    ]
    expect(await driver().spent()).toBe(0n)
    await driver().settle(open.id, "settled", 4n)
    expect(await driver().spent()).toBe(4n)
    await driver().settle((await driver().admit({ holdMicros: 5n })).id, "voided", 5n)
    expect(await driver().spent()).toBe(4n)
    driver().open.clock.advance(Date.UTC(2026, 1, 1) - driver().open.clock.nowMs())
    expect(await driver().spent()).toBe(0n)
    await driver().settle(late.id, "settled", 20n)
    expect(await driver().spent()).toBe(0n)
    await driver().settle((await driver().admit({ holdMicros: 7n })).id, "settled", 7n)
    expect(await driver().spent()).toBe(7n)
  })

  it("a look says whether cap and balance would cover a hold, also of an account that nobody has heard of", async () => {
    const look = (holdMicros: bigint, monthlyCapMicros = 0n) =>
      reasonOf(driver().admit({ counts: "peek", holdMicros, limits: { rpm: 0, monthlyCapMicros } }))
    expect(await look(1n)).toBe("balance")
    await driver().grant(10n)
    expect([await look(10n), await look(11n), await look(10n, 9n)]).toEqual([
      undefined,
      "balance",
      "monthly_cap",
    ])
    expect(await driver().balance()).toEqual([10n, 0n])
  })

  it("a batch line holds money, under cap and balance", async () => {
    await driver().grant(10n)
    await driver().admit({ counts: "money", holdMicros: 4n })
    expect(await driver().balance()).toEqual([10n, 4n])
    expect(await reasonOf(driver().admit({ counts: "money", holdMicros: 7n }))).toBe("balance")
    expect(
      await reasonOf(
        driver().admit({ counts: "money", holdMicros: 2n, limits: { monthlyCapMicros: 5n } }),
      ),
    ).toBe("monthly_cap")
  })

  it("voids the open lines of one batch only", async () => {
    await driver().grant(100n)
    const parent = randomUUID()
    const done = await driver().admit({ counts: "money", holdMicros: 10n, parent })
    await driver().settle(done.id, "settled", 10n)
    await driver().admit({ counts: "money", holdMicros: 20n, parent })
    await driver().admit({ counts: "money", holdMicros: 30n, parent: randomUUID() })
    await Effect.runPromise(driver().open.billing.voidChildren(parent))
    expect(await driver().balance()).toEqual([90n, 30n])
  })

  it("leaves a line charged that was settled a moment ago", async () => {
    await driver().grant(100n)
    const parent = randomUUID()
    const { id } = await driver().admit({ counts: "money", holdMicros: 10n, parent })
    await driver().settle(id, "settled", 10n)
    await Effect.runPromise(driver().open.billing.voidChildren(parent))
    expect(await driver().balance()).toEqual([90n, 0n])
  })

  it("adjusts once per id, and never below what is held", async () => {
    await driver().grant(50n, `${driver().key}-a`)
    await driver().grant(50n, `${driver().key}-a`)
    expect(await driver().balance()).toEqual([50n, 0n])
    await driver().admit({ holdMicros: 30n })
    const below = await driver().grant(-21n)
    expect(Exit.isFailure(below) && Exit.findErrorOption(below)).toMatchObject({
      value: { _tag: "BalanceTooLow" },
    })
    expect(Exit.isSuccess(await driver().grant(-20n))).toBe(true)
    expect(await driver().balance()).toEqual([30n, 30n])
  })
}
