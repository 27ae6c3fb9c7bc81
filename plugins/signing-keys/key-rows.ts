import { Effect } from "effect"
import { sql } from "kysely"
import type { Database, PortError, SigningPurpose, Transaction } from "../../core/index.ts"
import type { PublicJwk } from "./key-pair.ts"

export interface SigningKeyTables {
  readonly signing_key: {
    readonly kid: string
    readonly purpose: SigningPurpose
    readonly public_jwk: PublicJwk
    /** Encrypted; null once the key no longer signs. */
    readonly private_jwk: string | null
    /** Id of the key that encrypted `private_jwk`. */
    readonly sealed_by: string
    readonly created_at: Date
    readonly retires_at: Date
    /** Null: forever. */
    readonly accepted_until: Date | null
  }
}
export type KeyRow = SigningKeyTables["signing_key"]

export interface KeyRows {
  /** Rows of keys that are accepted at `nowMs`, newest first. */
  accepted(nowMs: number, tx?: Transaction): Effect.Effect<readonly KeyRow[], PortError>
  /** Keeps other replicas from making a key until `tx` ends. */
  lock(tx: Transaction): Effect.Effect<void, PortError>
  insert(row: KeyRow, tx: Transaction): Effect.Effect<void, PortError>
  /**
   * Erases the private halves of keys that no longer sign, and deletes keys that are no longer
   * accepted.
   */
  erase(nowMs: number): Effect.Effect<void, PortError>
}

/** A replica whose clock is behind by this much may still be signing. */
const maxSkewMs = 60 * 60_000

export const makeKeyRows = (database: Database): KeyRows => {
  const db = (tx?: Transaction) => database.queries<SigningKeyTables>(tx)
  const asked = (query: () => Promise<unknown>) => Effect.asVoid(database.run(query))
  return {
    accepted: (nowMs, tx) =>
      database.run(() =>
        db(tx)
          .selectFrom("signing_key")
          .selectAll()
          .where((eb) =>
            eb.or([eb("accepted_until", "is", null), eb("accepted_until", ">", new Date(nowMs))]),
          )
          .orderBy("created_at", "desc")
          .orderBy("kid")
          .execute(),
      ),
    lock: (tx) =>
      asked(() => sql`SELECT pg_advisory_xact_lock(hashtext('rakit/signing_key'))`.execute(db(tx))),
    insert: (row, tx) =>
      asked(() =>
        db(tx)
          .insertInto("signing_key")
          .values({ ...row, public_jwk: JSON.stringify(row.public_jwk) as never })
          .execute(),
      ),
    erase: (nowMs) =>
      asked(async () => {
        const retired = new Date(nowMs - maxSkewMs)
        await db()
          .updateTable("signing_key")
          .set({ private_jwk: null })
          .where("private_jwk", "is not", null)
          .where("retires_at", "<=", retired)
          .execute()
        await db().deleteFrom("signing_key").where("accepted_until", "<=", retired).execute()
      }),
  }
}
