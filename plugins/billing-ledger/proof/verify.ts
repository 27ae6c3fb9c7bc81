import { Effect } from "effect"
import { type RawBuilder, sql } from "kysely"
import type { Database, LedgerFault, LedgerProof, PortError, Transaction } from "../../../core/index.ts"
import { callInvariants } from "./calls.ts"
import type { Invariant, ProofContext } from "./invariant.ts"
import { keyInvariants } from "./keys.ts"
import { transferInvariants } from "./transfers.ts"

const shownBreaches = 20

export const invariantsOf = (context: ProofContext): readonly Invariant[] => [...transferInvariants, ...callInvariants(context), ...keyInvariants(context)]

const faultsOf = (says: string, breaches: readonly { readonly detail: string; readonly total: bigint }[]): readonly LedgerFault[] => {
  const more = Number(breaches[0]?.total ?? 0) - breaches.length
  return [...breaches.map(({ detail }) => detail), ...(more > 0 ? [`and ${more} more`] : [])].map((detail) => ({ invariant: says, detail }))
}

/** All of it sees the ledger as it was at one moment, while calls go on. */
export const verifyLedger = (database: Database, context: ProofContext): Effect.Effect<LedgerProof, PortError> =>
  database.transaction((tx: Transaction) =>
    Effect.gen(function* () {
      const ask = <Row>(query: RawBuilder<Row>) =>
        Effect.map(
          database.run(() => query.execute(database.queries(tx))),
          ({ rows }) => rows,
        )
      yield* ask(sql`SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY`)
      yield* ask(sql`SELECT set_config('jit', 'off', true), set_config('statement_timeout', '0', true)`)
      const checked: { invariant: string; rows: number }[] = []
      const faults: LedgerFault[] = []
      for (const { says, rows, breaches } of invariantsOf(context)) {
        const [counted] = yield* ask(rows)
        checked.push({ invariant: says, rows: Number(counted?.rows ?? 0) })
        faults.push(...faultsOf(says, yield* ask(sql<{ detail: string; total: bigint }>`SELECT detail, count(*) OVER () AS total FROM (${breaches}) b LIMIT ${shownBreaches}`)))
      }
      return { checked, faults }
    }),
  )
