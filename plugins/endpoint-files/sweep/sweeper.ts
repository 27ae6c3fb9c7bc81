import { Cause, Effect } from "effect"
import { deleteDueBlobs } from "../blobs/deletion-queue.ts"
import type { FilesDeps } from "../deps.ts"
import { expireUploads } from "../uploads/close-upload.ts"
import { abandonLapsed, expireFiles, forgetOld } from "./expire.ts"
import { scheduleOrphans } from "./orphans.ts"

const turnMs = 4_000
const turnsPerMinute = 15
const turnsPerHour = 900

/** Runs one task of the sweeper; a failure is logged, and stops neither the other tasks nor the next turn. */
const careful = <E>(
  deps: FilesDeps,
  what: string,
  work: Effect.Effect<number, E>,
): Effect.Effect<void> =>
  work.pipe(
    Effect.tap((count) =>
      Effect.sync(() => count > 0 && deps.log.info("file.swept", what, { count })),
    ),
    Effect.catchCause((cause) =>
      Cause.hasInterruptsOnly(cause)
        ? Effect.interrupt
        : Effect.sync(() =>
            deps.log.warn("file.sweep_failed", `${what}: failed`, { cause: Cause.pretty(cause) }),
          ),
    ),
    Effect.asVoid,
  )

export const sweepMinutely = (deps: FilesDeps): Effect.Effect<void> =>
  Effect.gen(function* () {
    yield* careful(deps, "unfinished uploads given up", abandonLapsed(deps))
    yield* careful(deps, "uploads expired", expireUploads(deps))
    yield* careful(deps, "files expired", expireFiles(deps))
  })

export const sweepHourly = (deps: FilesDeps): Effect.Effect<void> =>
  Effect.gen(function* () {
    yield* careful(deps, "orphan blobs found", scheduleOrphans(deps))
    yield* careful(deps, "old rows forgotten", forgetOld(deps))
  })

/** Every server sweeps; concurrent sweeps are safe. Deleted bytes are gone within two turns, also when the server that deleted them died. */
export const keepSwept = (deps: FilesDeps): Effect.Effect<never> => {
  let turn = 0
  return Effect.suspend(() =>
    Effect.gen(function* () {
      if (turn % turnsPerHour === 0) yield* sweepHourly(deps)
      if (turn % turnsPerMinute === 0) yield* sweepMinutely(deps)
      yield* careful(deps, "deleted blobs removed", deleteDueBlobs(deps))
      turn += 1
    }),
  ).pipe(Effect.andThen(Effect.sleep(turnMs)), Effect.forever)
}
