import { type Caller, type CallInput, type Catalogue, defaultLimits, type Json } from "../../../core/index.ts"

/** Nobody is asked for money or limits. `live`: the price is named as a customer would pay it. */
const operator: Caller = { tenant: { account: "batch-run", mode: "live" }, keyId: "batch-run", scopes: ["*"], role: "user", limits: defaultLimits }

/** A line of the file as a call. */
export const callOf = ({ batchPriceFactor }: Catalogue, requestId: string, body: Json): CallInput => ({
  caller: operator,
  body,
  requestId,
  priority: "batch",
  priceFactor: batchPriceFactor,
})
