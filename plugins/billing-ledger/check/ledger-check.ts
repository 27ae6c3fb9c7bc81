import { Effect, Stream } from "effect"
import type { Clock, ConsistencyCheck, Database, Finding } from "../../../core/index.ts"
import { hours, overdue, tokens } from "../proof/calls.ts"
import type { ProofContext } from "../proof/invariant.ts"
import { invariantsOf, verifyLedger } from "../proof/verify.ts"
import { makeReplica } from "../replica.ts"

export interface LedgerCheckDeps {
  readonly database: Database
  readonly clock: Clock
  readonly leaseMs: number
  readonly sweepMs: number
}

export const contextOf = ({ clock, leaseMs, sweepMs }: LedgerCheckDeps): ProofContext => ({
  now: new Date(clock.nowMs()),
  leaseMs,
  sweepMs,
})

/** The id of no living replica: this one only sweeps. */
const sweeper = "00000000-0000-0000-0000-000000000000"

/**
 * All invariants of `rakit ledger verify` but those of usage. Repairs no money: it only expires
 * calls that are over, which frees their holds, as the sweep of a server does.
 */
export const ledgerCheck = (deps: LedgerCheckDeps): ConsistencyCheck => ({
  name: "ledger",
  about:
    "balances, holds, charges and counters of keys are what transfers and calls come to, and no call that is over holds anything",
  findings: (looked) =>
    Stream.suspend(() => {
      const context = contextOf(deps)
      const isSwept = overdue(context).says
      const elsewhere = [hours.says, tokens.says]
      const invariants = invariantsOf(context).filter(({ says }) => !elsewhere.includes(says))
      const swept = Effect.asVoid(
        makeReplica(deps.database, deps.clock, sweeper, deps.leaseMs).sweep,
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
        Effect.map(verifyLedger(deps.database, context, invariants, looked), ({ faults }) =>
          faults.map(findingOf),
        ),
      )
    }),
})
