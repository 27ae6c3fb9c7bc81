import { Effect } from "effect"
import type { Clock, Database, Ledger } from "../../core/index.ts"
import { childrenOf } from "./children.ts"
import { verifyLedger } from "./proof/verify.ts"
import type { Settings } from "./settings.ts"
import { usageSums } from "./usage-sums.ts"

/** Test keys cost nothing, so reports are of live ones. */
export const makeLedger = (
  database: Database,
  clock: Clock,
  { leaseMs, sweepMs }: Pick<Settings, "leaseMs" | "sweepMs">,
): Ledger => ({
  verify: Effect.suspend(() =>
    verifyLedger(database, { now: new Date(clock.nowMs()), leaseMs, sweepMs }),
  ),
  children: (parents) => childrenOf(database, parents),
  report: (query) =>
    Effect.map(
      Effect.suspend(() => usageSums(database, { ...query, mode: "live", nowMs: clock.nowMs() })),
      (sums) =>
        sums.map(({ groups, ...sum }) => ({ ...sum, groups: groups.map((group) => group ?? "") })),
    ),
})
