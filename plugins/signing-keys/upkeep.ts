import { Effect, type Scope } from "effect"
import { type Log, repeat } from "../../core/index.ts"
import type { KeyRing } from "./key-ring.ts"

/**
 * Loads the keys of all replicas, makes those that are missing, so that they are published before
 * they are needed, and erases those that are over.
 */
export const renewKeys = (ring: KeyRing) =>
  Effect.gen(function* () {
    yield* ring.load
    yield* ring.current("session")
    yield* ring.current("receipt")
    yield* ring.erase
  })

/**
 * Renews every hour, up to a tenth of an hour later: replicas that started together don't all do it
 * at once.
 */
export const renewHourly = (
  ring: KeyRing,
  log: Log,
  random: () => number,
): Effect.Effect<void, never, Scope.Scope> =>
  repeat(
    log,
    {
      event: "signing_key.renewal_failed",
      message: "the signing keys could not be renewed; it will be tried again",
      everyMs: () => 3_600_000 * (1 + random() / 10),
      isDelayed: true,
    },
    renewKeys(ring),
  )
