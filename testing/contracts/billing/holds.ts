import { expect, it } from "vitest"
import { type BillingDriver, reasonOf } from "./driver.ts"

/** Holds, settlements and the balance. */
export const holdCases = (driver: () => BillingDriver): void => {
  it("holds the worst case, then takes what was used", async () => {
    await driver().grant(100n)
    const call = await driver().admit({ holdMicros: 40n })
    expect(await driver().balance()).toEqual([100n, 40n])
    await driver().settle(call.id, "settled", 15n)
    expect(await driver().balance()).toEqual([85n, 0n])
    await driver().settle(call.id, "settled", 15n)
    await driver().settle(call.id, "voided")
    expect(await driver().balance()).toEqual([85n, 0n])
  })

  it("takes model, prices and a time to expire, which change nothing while the call is in time", async () => {
    await driver().grant(100n)
    const price = {
      input: "1500",
      output: "6000",
      cacheRead: "150",
      cacheWrite: "1875",
      image: "0",
      audioSecond: "0",
      searchUnit: "0",
    }
    const call = await driver().admit({
      holdMicros: 40n,
      model: "svc-lyt",
      prices: { factor: 1, models: { "svc-lyt": price } },
      expiresMs: driver().open.clock.nowMs() + 1,
    })
    await driver().settle(call.id, "settled", 15n)
    expect(await driver().balance()).toEqual([85n, 0n])
  })

  it("never takes more than the hold", async () => {
    await driver().grant(100n)
    const call = await driver().admit({ holdMicros: 40n })
    await driver().settle(call.id, "settled", 60n)
    expect(await driver().balance()).toEqual([60n, 0n])
  })

  it("voided and refused calls cost nothing", async () => {
    await driver().grant(100n)
    for (const outcome of ["voided", "refused"] as const)
      await driver().settle((await driver().admit({ holdMicros: 40n })).id, outcome, 30n)
    expect(await driver().balance()).toEqual([100n, 0n])
  })

  it("parallel calls can't overdraw the balance", async () => {
    await driver().grant(20n)
    expect(
      await driver().flood(200, { holdMicros: 1n, limits: { rpm: 1000, concurrency: 1000 } }),
    ).toBe(20)
    expect(await driver().balance()).toEqual([20n, 20n])
  })

  it("refuses at Rp0 what costs, also on an account that nobody has heard of", async () => {
    expect(await reasonOf(driver().admit({ holdMicros: 1n }))).toBe("balance")
    expect(await driver().balance()).toEqual([0n, 0n])
  })

  it("dry runs, looks and test keys hold nothing", async () => {
    await driver().grant(10n)
    for (const ask of [{ counts: "rpm" }, { counts: "peek" }, { mode: "test" }] as const)
      await driver().admit({ ...ask, holdMicros: 5n })
    expect(await driver().balance()).toEqual([10n, 0n])
  })

  it("keeps amounts exact that no float can hold", async () => {
    await driver().grant(9_007_199_254_740_993n)
    const call = await driver().admit({
      holdMicros: 9_007_199_254_740_993n,
      limits: { monthlyCapMicros: 0n },
    })
    await driver().settle(call.id, "settled", 9_007_199_254_740_992n)
    expect(await driver().balance()).toEqual([1n, 0n])
  })

  it("a hold larger than any amount is refused, not a failure", async () => {
    await driver().grant(1n)
    expect(
      await reasonOf(driver().admit({ holdMicros: 10n ** 30n, limits: { monthlyCapMicros: 0n } })),
    ).toBe("balance")
  })
}
