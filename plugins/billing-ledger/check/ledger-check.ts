import { Effect, Stream } from "effect"
import type { Clock, ConsistencyCheck, Database, Finding } from "../../../core/index.ts"
import { hours, overdue, tokens } from "../proof/calls.ts"
import type { ProofContext } from "../proof/invariant.ts"
import { invariantsOf, verifyLedger } from "../proof/verify.ts"
import { makeReplica } from "../replica.ts"

export interface LedgerCheckParts {
  readonly database: Database
  readonly clock: Clock
  readonly leaseMs: number
  readonly sweepMs: number
}

export const contextOf = ({ clock, leaseMs, sweepMs }: LedgerCheckParts): ProofContext => ({
  now: new Date(clock.nowMs()),
  leaseMs,
  sweepMs,
})

/** Of no replica that is alive: it only sweeps. */
const sweeper = "00000000-0000-0000-0000-000000000000"

/** All that `rakit ledger verify` proves but the usage. Money is never repaired here: only a hold that nobody needs any more is given back, as the sweep of a server does. */
export const ledgerCheck = (parts: LedgerCheckParts): ConsistencyCheck => ({
  name: "ledger",
  about:
    "balances, holds, charges and counters of keys are what transfers and calls come to, and no call that is over holds anything",
  findings: (looked) =>
    Stream.suspend(() => {
      const context = contextOf(parts)
      const isSwept = overdue(context).says
      const elsewhere = [hours.says, tokens.says]
      const invariants = invariantsOf(context).filter(({ says }) => !elsewhere.includes(says))
      const swept = Effect.asVoid(
        makeReplica(parts.database, parts.clock, sweeper, parts.leaseMs).sweep,
      )
      const findingOf = ({
        invariant,
        detail,
      }: {
        readonly invariant: string
        readonly detail: string
      }): Finding => ({
        subject: detail,
        problem: `against: ${invariant}`,
        ...(invariant === isSwept && {
          remedy: "it expires, and what it holds is free again",
          repair: swept,
        }),
      })
      return Stream.fromIterableEffect(
        Effect.map(verifyLedger(parts.database, context, invariants, looked), ({ faults }) =>
          faults.map(findingOf),
        ),
      )
    }),
})
