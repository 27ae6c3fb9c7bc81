// Run by replica.slow.test.ts: opens three calls on the database named in argv, and waits to be
// killed.
import { randomUUID } from "node:crypto"
import { Effect } from "effect"
import { Kysely, PostgresDialect } from "kysely"
import pg from "pg"
import {
  type Database,
  defaultLimits,
  PortError,
  systemClock,
  uuidV7,
} from "../../../core/index.ts"
import { fakeLog, fakeMetrics } from "../../../testing/fakes.ts"
import { makeLedgerBilling } from "../ledger-billing.ts"
import { makeReplica } from "../replica.ts"

const kysely = new Kysely<never>({
  dialect: new PostgresDialect({ pool: new pg.Pool({ connectionString: process.argv[2] }) }),
})
const failed = (cause: unknown) =>
  new PortError({ port: "database", message: String(cause), cause })
const database: Database = {
  queries: <Tables>() => kysely as unknown as Kysely<Tables>,
  run: (query) => Effect.tryPromise({ try: query, catch: failed }),
  transaction: () => Effect.fail(failed("not here")),
  migrate: () => Effect.fail(failed("not here")),
  session: () => Effect.fail(failed("not here")),
}
const replica = randomUUID()
const settings = { maxGathered: 128, maxInFlight: 2, maxWaiting: 100 }
const billing = makeLedgerBilling({
  database,
  clock: systemClock,
  log: fakeLog(),
  metrics: fakeMetrics(),
  settings,
  replica,
})
const caller = {
  tenant: { account: "killed", mode: "live" },
  keyId: "killed-key",
  scopes: ["*"],
  role: "user",
  limits: defaultLimits,
} as const
const call = () => ({
  id: uuidV7(systemClock.nowMs()),
  caller,
  endpoint: "chat.completions",
  requestId: "r",
  holdMicros: 30n,
  counts: "all" as const,
})

await Effect.runPromise(
  makeReplica(database, systemClock, replica, 30_000).renew.pipe(
    Effect.andThen(
      billing.adjust({ id: "killed", account: "killed", amountMicros: 100n, reason: "test" }),
    ),
    Effect.andThen(Effect.forEach([1, 2, 3], () => billing.admit(call()), { discard: true })),
  ),
)
console.log("3 calls open")
setInterval(() => {}, 60_000)
