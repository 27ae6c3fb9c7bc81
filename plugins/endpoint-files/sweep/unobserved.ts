import { Effect } from "effect"
import type { PortError } from "../../../core/index.ts"
import type { FilesDeps } from "../deps.ts"
import { toStored } from "../files/file-rows.ts"
import type { FilesTables } from "../tables.ts"

const rowsPerTurn = 100

const unobserved = ({ database, clock }: FilesDeps) =>
  database.run(() =>
    database
      .queries<FilesTables>()
      .selectFrom("files_file")
      .select("id")
      .where("purpose", "=", "knowledge")
      .where("observed", "=", false)
      .where("deleted_at", "is", null)
      .where("expires_at", ">", new Date(clock.nowMs()))
      .orderBy("seq")
      .limit(rowsPerTurn)
      .execute(),
  )

const show = (deps: FilesDeps, id: string) =>
  deps.database.transaction((tx) =>
    Effect.gen(function* () {
      const row = yield* deps.database.run(() =>
        deps.database
          .queries<FilesTables>(tx)
          .updateTable("files_file")
          .set({ observed: true, status: "uploaded" })
          .where("id", "=", id)
          .where("observed", "=", false)
          .where("deleted_at", "is", null)
          .returningAll()
          .executeTakeFirst(),
      )
      // deleted meanwhile, or shown by another server
      if (!row) return
      for (const observer of deps.observers) yield* observer.created(toStored(row), tx)
    }),
  )

/**
 * Knowledge that was uploaded while nobody observed files begins anew, as if uploaded now, once
 * somebody does. Returns the number of such files of this turn.
 */
export const showUnobserved = (deps: FilesDeps): Effect.Effect<number, PortError> =>
  deps.observers.length === 0
    ? Effect.succeed(0)
    : Effect.flatMap(unobserved(deps), (rows) =>
        Effect.as(
          Effect.forEach(rows, ({ id }) => show(deps, id)),
          rows.length,
        ),
      )
