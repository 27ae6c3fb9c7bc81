import { afterEach, beforeEach, describe } from "vitest"
import { capCases } from "./billing/caps.ts"
import { countCases } from "./billing/counts.ts"
import { Desk, type OpenBilling } from "./billing/driver.ts"
import { holdCases } from "./billing/holds.ts"
import { limitCases } from "./billing/limits.ts"

/** Every provider of Billing runs it. `open` is called for each test; its clock starts on the 15th of January 2026 at noon UTC. */
export const billingContract = (name: string, open: () => Promise<OpenBilling>): void => {
  describe(`billing contract: ${name}`, () => {
    let desk: Desk
    beforeEach(async () => {
      desk = new Desk(await open())
    })
    afterEach(() => desk.open.close())
    describe("limits", () => {
      limitCases(() => desk)
      countCases(() => desk)
    })
    describe("money", () => {
      beforeEach(({ skip }) => skip(!desk.open.money, "it knows no money"))
      holdCases(() => desk)
      capCases(() => desk)
    })
  })
}
