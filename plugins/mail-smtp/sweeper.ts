import { Cause, Effect } from "effect"
import type { Log } from "../../core/index.ts"
import type { OutboxRows } from "./outbox-rows.ts"

/** Sweeps now and every hour, until it is interrupted. */
export const sweepHourly = ({ sweep }: Pick<OutboxRows, "sweep">, log: Log): Effect.Effect<never> =>
  sweep.pipe(
    Effect.tap((lost) =>
      Effect.sync(
        () =>
          lost > 0 &&
          log.warn(
            "mail.undecryptable_deleted",
            "mails were deleted that no server could open; they were encrypted with another secret (RAKIT_SECRET_KEY)",
            { mails: lost },
          ),
      ),
    ),
    Effect.catchCause((cause) =>
      Effect.sync(() =>
        log.warn("mail.sweep_failed", "old mails could not be swept", {
          cause: Cause.pretty(cause),
        }),
      ),
    ),
    Effect.andThen(Effect.sleep("1 hour")),
    Effect.forever,
  )
