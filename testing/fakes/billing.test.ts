import { billingContract } from "../contracts/billing.ts"
import { fakeBilling } from "./billing.ts"
import { fakeClock } from "./clock.ts"

billingContract("in memory", async () => {
  const clock = fakeClock()
  return { billing: fakeBilling(clock), clock, money: true, close: async () => {} }
})
