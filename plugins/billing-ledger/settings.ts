import { Schema } from "effect"
import { setting } from "../../core/index.ts"

const positive = (fallback: number, description: string) =>
  setting(Schema.Int.check(Schema.isGreaterThan(0)), fallback, description)

export const Settings = Schema.Struct({
  replyAfter: setting(
    Schema.Literals(["auto", "database", "journal"]),
    "auto",
    "When a reply may leave: after its settlement is in the `database`, or as soon as it is in the `journal` on this server's disk, some 100 milliseconds before that. There it survives a kill -9 and a restart, but not a loss of power, which is the operator's loss. `auto`: the journal with the embedded database, which is on the same disk and has no other server, else the database.",
  ),
  maxGathered: positive(128, "Most calls in one statement; 32 at most are settled by one."),
  maxInFlight: positive(
    1,
    "Most statements at once, for admissions and for settlements each. More than one wait for each other's locks and form smaller groups: two were measured at a fifth fewer calls per second.",
  ),
  maxWaiting: positive(10_000, "Most calls that wait for the database; further ones are refused."),
  maxSpare: setting(
    Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 128 })),
    64,
    "Most calls of a busy key that are admitted before their requests arrive, while at least half of its limits and of the balance is left; 0: none. What is not used within 250 ms is given back. Where several servers share a key or an account, one may be refused for so long what another has in reserve.",
  ),
  heartbeatMs: positive(5_000, "How often this replica renews its lease."),
  leaseMs: positive(
    30_000,
    "A replica that has not renewed its lease for this long is dead: its open calls expire. At least twice `heartbeatMs`.",
  ),
  sweepMs: positive(10_000, "How often each replica expires the calls of dead replicas."),
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
