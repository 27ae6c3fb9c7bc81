import { Cause, Effect } from "effect"
import type { PortError } from "../../../core/index.ts"
import type { FilesDeps } from "../deps.ts"
import { toStored } from "../files/file-rows.ts"
import type { FilesTables } from "../tables.ts"
import { rowsPerTurn, untilDrained } from "./expire.ts"

const unobserved = ({ database, clock }: FilesDeps, after: bigint) =>
  database.run(() =>
    database
      .queries<FilesTables>()
      .selectFrom("files_file")
      .select(["id", "seq"])
      .where("purpose", "=", "knowledge")
      .where("observed", "=", false)
      .where("deleted_at", "is", null)
      .where("expires_at", ">", new Date(clock.nowMs()))
      .where("seq", ">", after)
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
 * One that an observer fails for does not keep the others from theirs; a later sweep tries again.
 * Returns whether it did not fail.
 */
const tryToShow = (deps: FilesDeps, id: string): Effect.Effect<boolean> =>
  Effect.catchCause(Effect.as(show(deps, id), true), (cause) =>
    Cause.hasInterruptsOnly(cause)
      ? Effect.interrupt
      : Effect.sync(() => {
          deps.log.warn("file.observer_failed", "an older file could not be shown to observers", {
            file: id,
            cause: Cause.pretty(cause),
          })
          return false
        }),
  )

/**
 * Knowledge that was uploaded while nobody observed files begins anew, as if uploaded now, once
 * somebody does. Returns the number of such files.
 */
export const showUnobserved = (deps: FilesDeps): Effect.Effect<number, PortError> =>
  Effect.gen(function* () {
    if (deps.observers.length === 0) return 0
    let [after, shown] = [0n, 0]
    yield* untilDrained(
      Effect.gen(function* () {
        const rows = yield* unobserved(deps, after)
        for (const { id, seq } of rows) {
          if (yield* tryToShow(deps, id)) shown++
          after = seq
        }
        return rows.length
      }),
    )
    return shown
  })
