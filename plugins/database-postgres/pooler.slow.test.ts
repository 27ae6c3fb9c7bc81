import { Cause, Effect, Exit, Option, Schema, Scope } from "effect"
import { sql } from "kysely"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import type { Database } from "../../core/ports/database.ts"
import { databaseContract } from "../../testing/contracts/database.ts"
import { fakeLog } from "../../testing/fakes/log.ts"
import { openTestDatabase, type TestDatabase } from "../../testing/postgres.ts"
import { missing, startPgBouncer } from "../../testing/proxies.ts"
import { openPostgres } from "./postgres.ts"
import { Settings } from "./settings.ts"

const deployment = {
  name: "test",
  dataDir: "/nonexistent",
  modelsDir: "/nonexistent",
  baseUrl: "http://127.0.0.1",
  mode: "server",
} as const

const opening = (settings: object) =>
  openPostgres(Schema.decodeUnknownSync(Settings)(settings), { deployment, log: fakeLog() })

const openPooled = async () => {
  const test = await openTestDatabase()
  const pooler = await startPgBouncer(test.url)
  const url = pooler.urlOf(test.url)
  const scope = Scope.makeUnsafe()
  const open = async (more: object = {}) => {
    const opened = opening({ url, directUrl: test.url, ...more })
    return (await Effect.runPromise(opened.pipe(Scope.provide(scope)))).database
  }
  const close = async () => {
    await Effect.runPromise(Scope.close(scope, Exit.void))
    await pooler.close()
    await test.close()
  }
  return { test, url, open, close }
}
const reason = missing("pgbouncer")

describe.skipIf(reason)(`through PgBouncer in transaction mode ${reason ?? ""}`, () => {
  databaseContract("PgBouncer", async () => {
    const { open, close } = await openPooled()
    return { database: await open(), second: await open(), close }
  })

  describe("what belongs to a session", () => {
    let pooled: Awaited<ReturnType<typeof openPooled>>
    let direct: TestDatabase
    let database: Database
    beforeAll(async () => {
      pooled = await openPooled()
      direct = pooled.test
      database = await pooled.open({ statementTimeoutMs: 7_000, maxConnections: 20 })
    })
    afterAll(() => pooled?.close())
    const ask = <A>(text: string, db = database.queries()) =>
      database.run(async () => (await sql<A>`${sql.raw(text)}`.execute(db)).rows)

    it("statements that are prepared elsewhere run on any of its connections", async () => {
      const text = "/* prepared */ select pg_backend_pid() as pid, pg_sleep(0.05) as nothing"
      const rows = await Effect.runPromise(
        Effect.all(
          Array.from({ length: 40 }, () => ask<{ pid: number }>(text)),
          { concurrency: 20 },
        ),
      )
      expect(new Set(rows.map(([row]) => row!.pid)).size).toBeGreaterThan(1)
    })

    it("a transaction has its time limits, and leaves none to others", async () => {
      const inside = await Effect.runPromise(
        database.transaction((tx) => ask("show statement_timeout", database.queries(tx))),
      )
      expect(inside).toEqual([{ statement_timeout: "7s" }])
      const after = await Effect.runPromise(
        Effect.all(
          Array.from({ length: 20 }, () => ask("show statement_timeout")),
          { concurrency: 20 },
        ),
      )
      expect(new Set(after.map(([row]) => JSON.stringify(row)))).toEqual(
        new Set(['{"statement_timeout":"0"}']),
      )
    })

    it("a session goes past the pooler: it keeps its advisory lock, and has no time limits", async () => {
      // pg_locks shows the locks of every database of the server, and other tests run on it
      const here = "database = (select oid from pg_database where datname = current_database())"
      const locks = `select count(*)::int as n from pg_locks where locktype = 'advisory' and ${here}`
      const seen = await Effect.runPromise(
        database.session(async (db) => {
          await sql`select pg_advisory_lock(77)`.execute(db)
          const { rows } = await sql`${sql.raw(locks)}`.execute(direct.database.queries())
          const limit = await sql`show statement_timeout`.execute(db)
          return [...rows, ...limit.rows]
        }),
      )
      expect(seen).toEqual([{ n: 1 }, { statement_timeout: "0" }])
      await expect
        .poll(() => Effect.runPromise(ask(locks, direct.database.queries())))
        .toEqual([{ n: 0 }])
    })
  })

  it("a directUrl of another database is refused, and one without url", async () => {
    const { url, close } = await openPooled()
    const other = await openTestDatabase()
    const refusal = async (settings: object) => {
      const exit = await Effect.runPromiseExit(Effect.scoped(opening(settings)))
      return Exit.isFailure(exit)
        ? Option.getOrUndefined(Cause.findErrorOption(exit.cause))?.message
        : undefined
    }
    const message = await refusal({ url, directUrl: other.url })
    expect(message).toMatch(/^url \(127.+\) and directUrl \(127.+\) lead to different databases/)
    expect(message).not.toContain(new URL(other.url).password)
    expect(await refusal({ directUrl: other.url })).toMatch(/set url, too/)
    await other.close()
    await close()
  })
})
