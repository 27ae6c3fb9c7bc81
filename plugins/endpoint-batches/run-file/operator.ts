import { type Caller, defaultLimits } from "../../../core/index.ts"

/** The caller of all lines: without limits and billing. `live`: costs are those of a customer. */
export const operator: Caller = {
  tenant: { account: "batch-run", mode: "live" },
  keyId: "batch-run",
  scopes: ["*"],
  role: "user",
  limits: defaultLimits,
}
