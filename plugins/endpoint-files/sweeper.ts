import { Cause, Effect } from "effect"
import type { FilesHouse } from "./house.ts"
import { throwOrphans } from "./orphans.ts"
import { abandonLapsed, expireFiles, forgetOld } from "./sweep-rows.ts"
import { emptyTrash } from "./trash.ts"
import { expireUploads } from "./uploads/close-upload.ts"

const turnMs = 4_000
const turnsPerMinute = 15
const turnsPerHour = 900

/** One kind of work; its failure is logged, and stops neither the others nor the next turn. */
const careful = <E>(
  house: FilesHouse,
  what: string,
  work: Effect.Effect<number, E>,
): Effect.Effect<void> =>
  work.pipe(
    Effect.tap((count) => Effect.sync(() => count > 0 && house.log.info(what, { count }))),
    Effect.catchCause((cause) =>
      Cause.hasInterruptsOnly(cause)
        ? Effect.interrupt
        : Effect.sync(() => house.log.warn(`${what}: failed`, { cause: Cause.pretty(cause) })),
    ),
    Effect.asVoid,
  )

export const sweepMinutely = (house: FilesHouse): Effect.Effect<void> =>
  Effect.gen(function* () {
    yield* careful(house, "unfinished uploads given up", abandonLapsed(house))
    yield* careful(house, "uploads expired", expireUploads(house))
    yield* careful(house, "files expired", expireFiles(house))
  })

export const sweepHourly = (house: FilesHouse): Effect.Effect<void> =>
  Effect.gen(function* () {
    yield* careful(house, "orphan blobs found", throwOrphans(house))
    yield* careful(house, "old rows forgotten", forgetOld(house))
  })

/** Every server sweeps; several at once do no harm. Deleted bytes are gone within two turns also when the server that deleted them died. */
export const keepSwept = (house: FilesHouse): Effect.Effect<never> => {
  let turn = 0
  return Effect.suspend(() =>
    Effect.gen(function* () {
      if (turn % turnsPerHour === 0) yield* sweepHourly(house)
      if (turn % turnsPerMinute === 0) yield* sweepMinutely(house)
      yield* careful(house, "deleted blobs removed", emptyTrash(house))
      turn += 1
    }),
  ).pipe(Effect.andThen(Effect.sleep(turnMs)), Effect.forever)
}
