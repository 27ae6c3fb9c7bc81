import { Effect, Schedule, type Scope } from "effect"
import type { Clock } from "../../core/services/clock.ts"
import type { Log } from "../../core/services/log.ts"
import { sweep } from "./incoming.ts"

/** An upload that got no byte for so long is dead. */
const idleMs = 3_600_000

/** Sweeps now, then every hour until the Scope closes. */
export const keepSwept = (
  root: string,
  clock: Clock,
  log: Log,
): Effect.Effect<void, never, Scope.Scope> => {
  const once = Effect.tryPromise(() => sweep(root, clock.nowMs(), idleMs)).pipe(
    Effect.tap((swept) =>
      Effect.sync(
        () =>
          swept > 0 && log.info("storage.unfinished_swept", "Swept unfinished blobs", { swept }),
      ),
    ),
    Effect.catch((error) =>
      Effect.sync(() =>
        log.warn("storage.sweep_failed", "Unfinished blobs could not be swept", {
          error: String(error.cause),
        }),
      ),
    ),
  )
  return once.pipe(
    Effect.andThen(
      Effect.forkScoped(
        Effect.sleep(idleMs).pipe(Effect.andThen(once), Effect.repeat(Schedule.forever)),
      ),
    ),
    Effect.asVoid,
  )
}
