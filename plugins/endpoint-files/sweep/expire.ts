import { Effect } from "effect"
import { sql } from "kysely"
import type { PortError } from "../../../core/index.ts"
import { deleteBlobs } from "../blobs/deletion-queue.ts"
import { abandonIncoming } from "../blobs/incoming.ts"
import type { FilesDeps } from "../deps.ts"
import { deleteFile } from "../files/file-rows.ts"
import type { FilesTables } from "../tables.ts"

export const rowsPerTurn = 500
/** How long a deleted file, or an upload that has ended, keeps its row. */
const tombstoneMs = 30 * 24 * 3_600_000

/** Repeats `turn` until it handles less than a full turn. Returns the total number of rows. */
export const untilDrained = <E>(turn: Effect.Effect<number, E>): Effect.Effect<number, E> =>
  Effect.gen(function* () {
    for (let all = 0; ; ) {
      const rows = yield* turn
      all += rows
      if (rows < rowsPerTurn) return all
    }
  })

/** Deletes expired files. Returns their number. */
export const expireFiles = (deps: FilesDeps): Effect.Effect<number, PortError> => {
  const { database, clock } = deps
  const due = database.run(() =>
    database
      .queries<FilesTables>()
      .selectFrom("files_file")
      .select(["id", "account", "mode"])
      .where("deleted_at", "is", null)
      .where("expires_at", "<=", new Date(clock.nowMs()))
      .orderBy("expires_at")
      .limit(rowsPerTurn)
      .execute(),
  )
  return untilDrained(
    Effect.flatMap(due, (rows) =>
      Effect.map(
        Effect.forEach(rows, (row) =>
          Effect.flatMap(
            database.transaction((tx) => deleteFile(deps, row, row.id, tx)),
            (key) => (key === undefined ? Effect.void : deleteBlobs(deps, [key])),
          ),
        ),
        ({ length }) => length,
      ),
    ),
  )
}

/** Abandons the incoming blobs of servers that died. Returns their number. */
export const abandonLapsed = (deps: FilesDeps): Effect.Effect<number, PortError> => {
  const { database, clock } = deps
  const lapsed = database.run(() =>
    database
      .queries<FilesTables>()
      .selectFrom("files_incoming")
      .select("id")
      .where("lease_until", "<=", new Date(clock.nowMs()))
      .orderBy("lease_until")
      .limit(rowsPerTurn)
      .execute(),
  )
  return untilDrained(
    Effect.flatMap(lapsed, (rows) =>
      Effect.map(
        Effect.forEach(rows, ({ id }) => abandonIncoming(deps, id)),
        ({ length }) => length,
      ),
    ),
  )
}

/** Deletes old rows of deleted files and ended uploads. Returns their number. */
export const forgetOld = ({ database, clock }: FilesDeps): Effect.Effect<number, PortError> =>
  Effect.gen(function* () {
    const before = new Date(clock.nowMs() - tombstoneMs)
    const turn = (table: "files_file" | "files_upload", old: ReturnType<typeof sql>) =>
      untilDrained(
        Effect.map(
          database.run(() =>
            sql`DELETE FROM ${sql.table(table)} WHERE id IN (SELECT id FROM ${sql.table(table)} WHERE ${old} LIMIT ${rowsPerTurn} FOR UPDATE SKIP LOCKED)`.execute(
              database.queries<FilesTables>(),
            ),
          ),
          ({ numAffectedRows }) => Number(numAffectedRows ?? 0n),
        ),
      )
    const files = yield* turn("files_file", sql`deleted_at <= ${before}`)
    return (
      files + (yield* turn("files_upload", sql`expires_at <= ${before} AND status <> 'pending'`))
    )
  })
