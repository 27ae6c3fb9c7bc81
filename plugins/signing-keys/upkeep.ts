import { Cause, Effect } from "effect"
import type { Log } from "../../core/index.ts"
import type { KeyRing } from "./key-ring.ts"

const hourMs = 60 * 60_000

/** Sees that there is a key for each purpose, so that it is published before somebody needs it; then reads what the others made and forgets what is over. */
export const renewKeys = (ring: KeyRing) =>
  Effect.gen(function* () {
    yield* ring.load
    yield* ring.current("session")
    yield* ring.current("receipt")
    yield* ring.erase
  })

/** Every hour, or up to a tenth of one later, so that replicas that started together don't all come at once. */
export const renewHourly = (ring: KeyRing, log: Log, random: () => number): Effect.Effect<never> =>
  Effect.suspend(() => Effect.sleep(hourMs * (1 + random() / 10))).pipe(
    Effect.andThen(renewKeys(ring)),
    Effect.catchCause((cause) =>
      Effect.sync(() =>
        log.warn(
          "signing_key.renewal_failed",
          "the signing keys could not be renewed; it will be tried again",
          {
            cause: Cause.pretty(cause),
          },
        ),
      ),
    ),
    Effect.forever,
  )
