import { afterEach, beforeEach, describe } from "vitest"
import { capCases } from "./billing/caps.ts"
import { countCases } from "./billing/counts.ts"
import { BillingDriver, type OpenedBilling } from "./billing/driver.ts"
import { holdCases } from "./billing/holds.ts"
import { limitCases } from "./billing/limits.ts"
import { outageCases } from "./billing/outages.ts"

export type { OpenedBilling } from "./billing/driver.ts"

/**
 * What every Billing must do. `open` is called for each test; its clock starts on the 15th of
 * January 2026 at noon UTC.
 */
export const billingContract = (name: string, open: () => Promise<OpenedBilling>): void => {
  describe(`billing contract: ${name}`, () => {
    let driver: BillingDriver
    beforeEach(async () => {
      driver = new BillingDriver(await open())
    })
    afterEach(() => driver.open.close())
    describe("limits", () => {
      limitCases(() => driver)
      countCases(() => driver)
    })
    describe("money", () => {
      beforeEach(({ skip }) => skip(!driver.open.money, "it knows no money"))
      holdCases(() => driver)
      capCases(() => driver)
    })
    describe("an outage of its database", () => {
      beforeEach(({ skip }) => skip(!driver.open.outage, "it has no database"))
      outageCases(() => driver)
    })
  })
}
