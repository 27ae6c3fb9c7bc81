import { Data, Effect } from "effect"
import type { Updateable } from "kysely"
import type { Billing, PortError, Tenant, Transaction } from "../../../core/index.ts"
import type { RetrievalDeps } from "../deps.ts"
import type { DocumentRow, DocumentTable, RetrievalTables } from "../tables.ts"

/**
 * The right to work on a document. The epoch is its fencing token: every write names it, so that a
 * worker whose claim is not the last one changes nothing any more.
 */
export type Claim = Pick<DocumentRow, "no" | "epoch">

/** The document was removed, has ended, or is another worker's or job's. */
export class Superseded extends Data.TaggedError("Superseded")<Record<never, never>> {}

/** A statement that names the claim finds no row once the claim is not the last one. */
const claimed = <Row>(row: Row | undefined): Effect.Effect<Row, Superseded> =>
  row ? Effect.succeed(row) : Effect.fail(new Superseded())

export const tenantOf = ({ account, mode }: Pick<DocumentRow, keyof Tenant>): Tenant => ({
  account,
  mode,
})

/**
 * Takes the document over with the next epoch, and voids the calls that its last worker left open.
 * Undefined: there is no work, as it has failed, or was removed.
 */
export const claimDocument = (
  { database, billing }: Pick<RetrievalDeps, "database"> & { readonly billing: Billing },
  fileId: string,
): Effect.Effect<DocumentRow | undefined, PortError> =>
  database.transaction((tx) =>
    Effect.gen(function* () {
      const row = yield* database.run(() =>
        database
          .queries<RetrievalTables>(tx)
          .updateTable("retrieval_document")
          .set((eb) => ({ epoch: eb("epoch", "+", 1) }))
          .where("file_id", "=", fileId)
          .where("state", "not in", ["failed", "removed"])
          .returningAll()
          .executeTakeFirst(),
      )
      if (row) yield* billing.voidChildren(fileId, tx)
      return row
    }),
  )

/** Changes a claimed document that is in this state, and locks it until the transaction ends. */
export const updateClaimed = (
  { database }: Pick<RetrievalDeps, "database">,
  { no, epoch }: Claim,
  state: DocumentRow["state"],
  set: Updateable<DocumentTable>,
  tx: Transaction,
): Effect.Effect<DocumentRow, PortError | Superseded> =>
  Effect.flatMap(
    database.run(() =>
      database
        .queries<RetrievalTables>(tx)
        .updateTable("retrieval_document")
        // an update without a column is none
        .set({ epoch, ...set })
        .where("no", "=", no)
        .where("epoch", "=", epoch)
        .where("state", "=", state)
        .returningAll()
        .executeTakeFirst(),
    ),
    claimed,
  )

/** A claimed document that has not ended. */
export const readClaimed = (
  { database }: Pick<RetrievalDeps, "database">,
  { no, epoch }: Claim,
  tx: Transaction,
): Effect.Effect<DocumentRow, PortError | Superseded> =>
  Effect.flatMap(
    database.run(() =>
      database
        .queries<RetrievalTables>(tx)
        .selectFrom("retrieval_document")
        .selectAll()
        .where("no", "=", no)
        .where("epoch", "=", epoch)
        // who lists documents without a claim of its own may come after the worker's last write
        .where("state", "in", ["waiting", "extracting", "embedding"])
        .executeTakeFirst(),
    ),
    claimed,
  )

/** Counts a run that broke off. Returns how many have so far. */
export const noteFailure = (
  { database }: Pick<RetrievalDeps, "database">,
  { no, epoch }: Claim,
): Effect.Effect<number, PortError | Superseded> =>
  Effect.map(
    Effect.flatMap(
      database.run(() =>
        database
          .queries<RetrievalTables>()
          .updateTable("retrieval_document")
          .set((eb) => ({ failures: eb("failures", "+", 1) }))
          .where("no", "=", no)
          .where("epoch", "=", epoch)
          // its bytes went while it was read
          .where("state", "!=", "removed")
          .returning("failures")
          .executeTakeFirst(),
      ),
      claimed,
    ),
    ({ failures }) => failures,
  )
