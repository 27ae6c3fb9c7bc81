import { Effect, type Scope } from "effect"
import { type Log, repeat } from "../../core/index.ts"
import type { OutboxRows } from "./outbox-rows.ts"

/** At once and every hour. */
export const sweepHourly = (
  { sweep }: Pick<OutboxRows, "sweep">,
  log: Log,
): Effect.Effect<void, never, Scope.Scope> =>
  repeat(
    log,
    { event: "mail.sweep_failed", message: "old mails could not be swept", everyMs: 3_600_000 },
    Effect.map(sweep, (lost) => {
      if (lost > 0)
        log.warn(
          "mail.undecryptable_deleted",
          "mails were deleted that no server could open; they were encrypted with another secret (RAKIT_SECRET_KEY)",
          { mails: lost },
        )
    }),
  )
