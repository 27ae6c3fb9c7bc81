import { Effect } from "effect"
import { sql } from "kysely"
import { expect, it } from "vitest"
import { defaultLimits, type Migrations } from "../../core/index.ts"
import { openTestDatabase } from "../../testing/postgres.ts"
import { makeKeyRows } from "./key-rows.ts"
import { migrations } from "./migrations.ts"
import type { AccountsTables } from "./tables.ts"

it("keys without a largest body, from before or from a server of the version before, have the default", async () => {
  const { database, close } = await openTestDatabase()
  const migrate = (to: Migrations) => Effect.runPromise(database.migrate("accounts", to))
  const db = database.queries<AccountsTables>()
  const insert = (id: string) =>
    sql`INSERT INTO accounts_key (id, account_id, name, sha256, prefix, mode, scopes, rpm, rpd, concurrency, monthly_cap_micros, created_at)
      VALUES (${id}, 'acct_1', 'k', sha256(${id}::bytea), 'svc_live_', 'live', '{*}', 60, 10000, 10, 1000000000000, now())`.execute(
      db,
    )
  try {
    const names = Object.keys(migrations)
    const before = Object.fromEntries(
      Object.entries(migrations).slice(0, names.indexOf("007-body-limit")),
    )
    await migrate(before)
    await sql`INSERT INTO accounts_account (id, email, password_hash, role, created_at) VALUES ('acct_1', 'a@b.c', '-', 'user', now())`.execute(
      db,
    )
    await insert("key_before")
    await migrate(migrations)
    await insert("key_beside")
    const keys = makeKeyRows(database)
    for (const id of ["key_before", "key_beside"])
      expect((await Effect.runPromise(keys.byId(id)))?.caller.limits).toEqual(defaultLimits)
  } finally {
    await close()
  }
})
