import { Effect } from "effect"
import { type RawBuilder, sql } from "kysely"
import type {
  Database,
  LedgerFault,
  LedgerProof,
  PortError,
  Transaction,
} from "../../../core/index.ts"
import { callInvariants } from "./calls.ts"
import type { Invariant, ProofContext, Slice } from "./invariant.ts"
import { keyInvariants } from "./keys.ts"
import { transferInvariants } from "./transfers.ts"

const shownBreaches = 20
const callsAtOnce = 50_000

export const invariantsOf = (context: ProofContext): readonly Invariant[] => [
  ...transferInvariants,
  ...callInvariants(context),
  ...keyInvariants(context),
]

type Ask = <Row>(query: RawBuilder<Row>) => Effect.Effect<readonly Row[], PortError>

/** Divides all calls into slices of `callsAtOnce`. */
const slicesOf = (ask: Ask): Effect.Effect<readonly Slice[], PortError> =>
  Effect.gen(function* () {
    const slices: Slice[] = []
    for (let from = "00000000-0000-0000-0000-000000000000"; ; ) {
      const [next] = yield* ask(
        sql<{
          id: string
        }>`SELECT id FROM ledger_call WHERE id >= ${from} ORDER BY id OFFSET ${callsAtOnce} LIMIT 1`,
      )
      slices.push({ from, to: next?.id })
      if (!next) return slices
      from = next.id
    }
  })

const faultsOf = (
  ask: Ask,
  { says, breaches }: Invariant,
  slices: readonly Slice[],
): Effect.Effect<readonly LedgerFault[], PortError> =>
  Effect.gen(function* () {
    const details: string[] = []
    let total = 0
    for (const query of typeof breaches === "function" ? slices.map(breaches) : [breaches]) {
      const found = yield* ask(
        sql<{
          detail: string
          total: bigint
        }>`SELECT detail, count(*) OVER () AS total FROM (${query}) b LIMIT ${shownBreaches}`,
      )
      details.push(...found.map(({ detail }) => detail))
      total += Number(found[0]?.total ?? 0)
    }
    const shown = details.slice(0, shownBreaches)
    return [...shown, ...(total > shown.length ? [`and ${total - shown.length} more`] : [])].map(
      (detail) => ({ invariant: says, detail }),
    )
  })

/**
 * Checks the invariants in one REPEATABLE READ transaction: all queries see the ledger as it was at
 * one moment, while calls go on.
 * `looked` is called with the number of rows of each invariant.
 */
export const verifyLedger = (
  database: Database,
  context: ProofContext,
  invariants: readonly Invariant[] = invariantsOf(context),
  looked: (rows: number) => void = () => {},
): Effect.Effect<LedgerProof, PortError> =>
  database.transaction((tx: Transaction) =>
    Effect.gen(function* () {
      const ask: Ask = (query) =>
        Effect.map(
          database.run(() => query.execute(database.queries(tx))),
          ({ rows }) => rows,
        )
      yield* ask(sql`SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY`)
      yield* ask(sql`SELECT set_config('jit', 'off', true)`)
      const slices = yield* slicesOf(ask)
      const checked: { invariant: string; rows: number }[] = []
      const faults: LedgerFault[] = []
      for (const invariant of invariants) {
        const [counted] = yield* ask(invariant.rows)
        checked.push({ invariant: invariant.says, rows: Number(counted?.rows ?? 0) })
        looked(Number(counted?.rows ?? 0))
        faults.push(...(yield* faultsOf(ask, invariant, slices)))
      }
      return { checked, faults }
    }),
  )
