import { identityContract } from "../contracts/identity.ts"
import { fakeClock } from "./clock.ts"
import { fakeIdentity } from "./identity.ts"

identityContract("the fake", async () => {
  const identity = fakeIdentity()
  let accounts = 0
  return {
    identity,
    addKey: async (key, state) => {
      const { keyId, tenant } = identity.add({ key, account: `acct_${++accounts}`, ...state })
      return { keyId, account: tenant.account }
    },
    changeKey: async (key, state) => void identity.add({ key, ...state }),
    advance: fakeClock().advance,
  }
})
