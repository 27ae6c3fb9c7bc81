import { fakeBilling } from "./billing.ts"
import { billingContract } from "./billing-contract.ts"
import { fakeClock } from "./clock.ts"

billingContract("in memory", async () => {
  const clock = fakeClock()
  return { billing: fakeBilling(clock), clock, money: true, close: async () => {} }
})
