import { randomUUID } from "node:crypto"
import {
  type AdmitRequest,
  type Clock,
  type Database,
  defaultLimits,
  type Limits,
  type Settlement,
  uuidV7,
} from "../../../core/index.ts"
import { fakeLog, fakeMetrics } from "../../../testing/index.ts"
import { type LedgerBillingDeps, makeLedgerBilling } from "../ledger-billing.ts"

/** A replica's ledger without the call path around it. */
export const plainLedger = (
  database: Database,
  clock: Clock,
  {
    maxSpare = 0,
    maxInFlight = 2,
    ...journal
  }: Pick<LedgerBillingDeps, "journal" | "journalFirst"> & {
    readonly maxSpare?: number
    readonly maxInFlight?: number
  } = {},
  replica: string = randomUUID(),
) =>
  makeLedgerBilling({
    database,
    clock,
    log: fakeLog(),
    metrics: fakeMetrics(),
    settings: { maxGathered: 128, maxInFlight, maxWaiting: 1000, maxSpare },
    replica,
    ...journal,
  })

/** The admission of a live call whose limits are of no interest. */
export const plainCall = (
  account: string,
  clock: Clock,
  holdMicros = 0n,
  id = uuidV7(clock.nowMs()),
): AdmitRequest => ({
  id,
  caller: {
    tenant: { account, mode: "live" },
    keyId: `${account}-key`,
    scopes: ["*"],
    role: "user",
    limits: { ...defaultLimits, concurrency: 1000 },
  },
  endpoint: "chat.completions",
  requestId: "r",
  holdMicros,
  counts: "all",
})

export const withLimits = (
  { caller, ...request }: AdmitRequest,
  limits: Partial<Limits>,
): AdmitRequest => ({
  ...request,
  caller: { ...caller, limits: { ...caller.limits, ...limits } },
})

/** The settlement of a call whose usage is of no interest. */
export const settlementOf = (
  id: string,
  outcome: Settlement["outcome"] = "settled",
  costMicros = 0n,
): Settlement => ({ id, outcome, costMicros, usage: {}, httpStatus: 200 })
