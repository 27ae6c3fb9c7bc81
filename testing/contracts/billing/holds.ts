import { expect, it } from "vitest"
import { type Desk, reasonOf } from "./driver.ts"

/** Holds, settlements and the balance. */
export const holdCases = (desk: () => Desk): void => {
  it("holds the worst case, then takes what was used", async () => {
    await desk().grant(100n)
    const call = await desk().admit({ holdMicros: 40n })
    expect(await desk().balance()).toEqual([100n, 40n])
    await desk().settle(call.id, "settled", 15n)
    expect(await desk().balance()).toEqual([85n, 0n])
    await desk().settle(call.id, "settled", 15n)
    await desk().settle(call.id, "voided")
    expect(await desk().balance()).toEqual([85n, 0n])
  })

  it("takes model, prices and a time to expire, which change nothing while the call is in time", async () => {
    await desk().grant(100n)
    const price = {
      input: "1500",
      output: "6000",
      cacheRead: "150",
      cacheWrite: "1875",
      image: "0",
      searchUnit: "0",
    }
    const call = await desk().admit({
      holdMicros: 40n,
      model: "svc-lyt",
      prices: { factor: 1, models: { "svc-lyt": price } },
      expiresMs: desk().open.clock.nowMs() + 1,
    })
    await desk().settle(call.id, "settled", 15n)
    expect(await desk().balance()).toEqual([85n, 0n])
  })

  it("never takes more than the hold", async () => {
    await desk().grant(100n)
    const call = await desk().admit({ holdMicros: 40n })
    await desk().settle(call.id, "settled", 60n)
    expect(await desk().balance()).toEqual([60n, 0n])
  })

  it("voided and refused calls cost nothing", async () => {
    await desk().grant(100n)
    for (const outcome of ["voided", "refused"] as const)
      await desk().settle((await desk().admit({ holdMicros: 40n })).id, outcome, 30n)
    expect(await desk().balance()).toEqual([100n, 0n])
  })

  it("parallel calls can't overdraw the balance", async () => {
    await desk().grant(20n)
    expect(
      await desk().flood(200, { holdMicros: 1n, limits: { rpm: 1000, concurrency: 1000 } }),
    ).toBe(20)
    expect(await desk().balance()).toEqual([20n, 20n])
  })

  it("refuses at Rp0 what costs, also on an account that nobody has heard of", async () => {
    expect(await reasonOf(desk().admit({ holdMicros: 1n }))).toBe("balance")
    expect(await desk().balance()).toEqual([0n, 0n])
  })

  it("dry runs, looks and test keys hold nothing", async () => {
    await desk().grant(10n)
    for (const ask of [{ counts: "rpm" }, { counts: "none" }, { mode: "test" }] as const)
      await desk().admit({ ...ask, holdMicros: 5n })
    expect(await desk().balance()).toEqual([10n, 0n])
  })

  it("keeps amounts exact that no float can hold", async () => {
    await desk().grant(9_007_199_254_740_993n)
    const call = await desk().admit({
      holdMicros: 9_007_199_254_740_993n,
      limits: { monthlyCapMicros: 0n },
    })
    await desk().settle(call.id, "settled", 9_007_199_254_740_992n)
    expect(await desk().balance()).toEqual([1n, 0n])
  })

  it("a hold larger than any amount is refused, not a failure", async () => {
    await desk().grant(1n)
    expect(
      await reasonOf(desk().admit({ holdMicros: 10n ** 30n, limits: { monthlyCapMicros: 0n } })),
    ).toBe("balance")
  })
}
