import { Cause, Effect } from "effect"
import type { Log } from "../../core/index.ts"
import type { KeyRing } from "./key-ring.ts"

const hourMs = 60 * 60_000

/** Loads the keys of all replicas, makes those that are missing, so that they are published before they are needed, and erases those that are over. */
export const renewKeys = (ring: KeyRing) =>
  Effect.gen(function* () {
    yield* ring.load
    yield* ring.current("session")
    yield* ring.current("receipt")
    yield* ring.erase
  })

/** Renews every hour, up to a tenth of an hour later: replicas that started together don't all do it at once. */
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
