import { Effect, Schema } from "effect"

const positive = (fallback: number) =>
  Schema.Int.check(Schema.isGreaterThan(0))
    .annotate({ default: fallback })
    .pipe(Schema.withDecodingDefaultKey(Effect.succeed(fallback)))

export const Settings = Schema.Struct({
  /** Calls that share one statement. */
  maxGathered: positive(128),
  /** Statements at once, for admissions and for settlements each; more wait for each other's locks and make smaller groups: measured, a fifth fewer calls. */
  maxInFlight: positive(1),
  /** Calls that may wait for the database; one more is refused. */
  maxWaiting: positive(10_000),
  /** How often this replica says that it lives. */
  heartbeatMs: positive(5_000),
  /** A replica that was silent for so long is dead: its open calls expire. */
  leaseMs: positive(30_000),
  /** How often each replica looks for calls of dead ones. */
  sweepMs: positive(10_000),
}).check(
  Schema.makeFilter(
    (settings) =>
      settings.leaseMs >= 2 * settings.heartbeatMs || {
        path: ["leaseMs"],
        issue: "must be at least twice heartbeatMs",
      },
  ),
)

export type Settings = typeof Settings.Type
