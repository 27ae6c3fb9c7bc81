import { afterEach, beforeEach, describe } from "vitest"
import { capCases } from "./billing-contract/caps.ts"
import { countCases } from "./billing-contract/counts.ts"
import { Desk, type OpenBilling } from "./billing-contract/desk.ts"
import { holdCases } from "./billing-contract/holds.ts"
import { limitCases } from "./billing-contract/limits.ts"

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
