import { Cause, Effect } from "effect"
import type { Log } from "../../core/index.ts"
import type { JobRows } from "./job-rows.ts"

const dayMs = 86_400_000

/** Deletes old dead letters now and every hour, until it is interrupted. */
export const sweepHourly = (
  rows: Pick<JobRows, "sweep">,
  keepDays: number,
  log: Log,
): Effect.Effect<never> =>
  rows.sweep(keepDays * dayMs).pipe(
    Effect.tap((letters) =>
      Effect.sync(
        () =>
          letters > 0 &&
          log.info("queue.dead_letters_swept", "old dead letters were deleted", { letters }),
      ),
    ),
    Effect.catchCause((cause) =>
      Effect.sync(() =>
        log.warn("queue.sweep_failed", "old dead letters could not be deleted", {
          cause: Cause.pretty(cause),
        }),
      ),
    ),
    Effect.andThen(Effect.sleep("1 hour")),
    Effect.forever,
  )
