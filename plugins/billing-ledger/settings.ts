import { Effect, Schema } from "effect"

const positive = (fallback: number) =>
  Schema.Int.check(Schema.isGreaterThan(0))
    .annotate({ default: fallback })
    .pipe(Schema.withDecodingDefaultKey(Effect.succeed(fallback)))

export const Settings = Schema.Struct({
  /**
   * When a reply may leave: after its settlement is in the database, or as soon as it is in the
   * journal on this server's disk, a few milliseconds before that. There it survives a kill -9 and a
   * restart, but not a loss of power, which is the operator's loss.
   */
  replyAfter: Schema.Literals(["database", "journal"])
    .annotate({ default: "database" })
    .pipe(Schema.withDecodingDefaultKey(Effect.succeed("database" as const))),
  /** Most calls in one statement. */
  maxGathered: positive(128),
  /**
   * Most statements at once, for admissions and for settlements each. More than one wait for each
   * other's locks and form smaller groups: two were measured at a fifth fewer calls per second.
   */
  maxInFlight: positive(1),
  /** Most calls that wait for the database; further ones are refused. */
  maxWaiting: positive(10_000),
  /** How often this replica renews its lease. */
  heartbeatMs: positive(5_000),
  /** A replica that has not renewed its lease for this long is dead: its open calls expire. */
  leaseMs: positive(30_000),
  /** How often each replica expires the calls of dead replicas. */
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
