import { Effect } from "effect"
import { expect, it } from "vitest"
import type { BillingDriver } from "./driver.ts"

export const outageCases = (driver: () => BillingDriver) => {
  it("admits nothing, says why, and holds nothing", async () => {
    await driver().grant(100n)
    const { outage, billing } = driver().open
    outage!.begin()
    const refused = await Effect.runPromise(
      Effect.flip(billing.admit(driver().request({ holdMicros: 10n }))),
    )
    expect(refused).toMatchObject({ _tag: "PortError", why: "unavailable" })
    await outage!.end()
    expect(await driver().balance()).toEqual([100n, 0n])
  })

  it("settles the calls in flight, each once, when it is over", async () => {
    await driver().grant(100n)
    const ids: string[] = []
    for (let i = 0; i < 4; i++) ids.push((await driver().admit({ holdMicros: 20n })).id)
    const [a, b, voided, refused] = ids as [string, string, string, string]
    driver().open.outage!.begin()
    await driver().settle(a, "settled", 5n)
    await driver().settle(a, "settled", 9n)
    await driver().settle(b, "settled", 50n)
    await driver().settle(voided, "voided")
    await driver().settle(refused, "refused")
    await driver().open.outage!.end()
    expect(await driver().balance()).toEqual([75n, 0n])
    await driver().settle(b, "settled", 9n)
    expect(await driver().balance()).toEqual([75n, 0n])
    expect((await driver().admit({ limits: { rpm: 4 } })).rate, "one is given back").toBeDefined()
  })
}
