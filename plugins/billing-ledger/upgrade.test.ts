import { readFileSync } from "node:fs"
import { Effect } from "effect"
import { sql } from "kysely"
import { afterEach, beforeEach, expect, it } from "vitest"
import type { Database } from "../../core/index.ts"
import { openTestDatabase, type TestDatabase } from "../../testing/postgres.ts"
import { migrations } from "./migrations.ts"
import { verifyLedger } from "./proof/verify.ts"
import { openTestLedger } from "./testing/ledger.ts"

/** A database as the version before 003-functions left it. */
const oldMigrations = {
  "001-ledger": {
    up: async (db: Parameters<(typeof migrations)[string]["up"]>[0]) => {
      await migrations["001-ledger"]!.up(db)
      const text = readFileSync(new URL("testing/functions-of-001.sql", import.meta.url), "utf8")
      await sql.raw(text).execute(db)
    },
  },
  "002-children": migrations["002-children"]!,
}

let upgraded: TestDatabase
let fresh: TestDatabase
beforeEach(async () => {
  upgraded = await openTestDatabase()
  fresh = await openTestDatabase()
})
afterEach(() => Promise.all([upgraded.close(), fresh.close()]))

const run = Effect.runPromise
const rowsOf = async <Row>(database: Database, query: ReturnType<typeof sql<Row>>) =>
  (await run(database.run(() => query.execute(database.queries())))).rows
const functionsOf = (database: Database) =>
  rowsOf(
    database,
    sql`SELECT proname, prosrc, proargnames, proconfig, provolatile, prorettype::regtype::text
      FROM pg_proc WHERE pronamespace = 'public'::regnamespace ORDER BY proname`,
  )

it("gives an old database the functions of a new one", async () => {
  await run(upgraded.database.migrate("billing-ledger", oldMigrations))
  const before = await functionsOf(upgraded.database)
  expect(await run(upgraded.database.migrate("billing-ledger", migrations))).toEqual([
    "003-functions",
    "004-refusals",
    "005-evidence",
    "006-refused-calls",
    "007-call-outcomes",
    "008-revenue",
    "009-fewer-checks",
    "010-spare-calls",
  ])
  await run(fresh.database.migrate("billing-ledger", migrations))
  const after = await functionsOf(fresh.database)
  expect(after).toHaveLength(14)
  expect(await functionsOf(upgraded.database)).toEqual(after)
  expect(before).not.toEqual(after)
})

it("settles calls that the old functions admitted, and admits more", async () => {
  const { database } = upgraded
  await run(database.migrate("billing-ledger", oldMigrations))
  const ledger = await openTestLedger(upgraded, oldMigrations)
  await ledger.grant(5_000_000_000n)
  await ledger.spend()
  const open = await ledger.admit()

  await run(database.migrate("billing-ledger", migrations))
  await ledger.settle(open)
  await ledger.spend()
  await ledger.admit({ counts: "peek" })
  const calls = await rowsOf(database, sql`SELECT state, cost_micros FROM ledger_call`)
  expect(calls).toEqual(Array(3).fill({ state: "settled", cost_micros: 4_000_000n }))
  const request = { place: 0, id: open, account_id: "acct_1", key_id: "key_1", counts: "none" }
  const peeked = await rowsOf(
    database,
    sql`SELECT refusal, remaining FROM ledger_admit(${JSON.stringify([{ ...request, hold_micros: "0", rpm: 9 }])}, ${open}, ${new Date(ledger.clock.nowMs())})`,
  )
  expect(peeked, "a server of the version before asks with its own word").toEqual([
    { refusal: null, remaining: 6n },
  ])
  const now = new Date(ledger.clock.nowMs())
  expect(
    await run(verifyLedger(database, { now, leaseMs: 30_000, sweepMs: 10_000 })),
  ).toMatchObject({ faults: [] })
})
