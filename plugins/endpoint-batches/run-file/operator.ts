import { type Caller, defaultLimits } from "../../../core/index.ts"

/** Nobody is asked for money or limits. `live`: the price is named as a customer would pay it. */
export const operator: Caller = {
  tenant: { account: "batch-run", mode: "live" },
  keyId: "batch-run",
  scopes: ["*"],
  role: "user",
  limits: defaultLimits,
}
