import { createServer } from "node:net"
import { Cause, Effect, Exit, Option, Redacted, Result, Schema } from "effect"
import { sql } from "kysely"
import { expect, test } from "vitest"
import type { Migrations } from "../../core/ports/database.ts"
import type { Deployment } from "../../core/services/deployment.ts"
import { fakeLog } from "../../testing/fakes/log.ts"
import { openTestDatabase } from "../../testing/postgres.ts"
import { openPostgres } from "./postgres.ts"
import { refusalOf } from "./ready.ts"
import { Settings } from "./settings.ts"

const deployment: Deployment = {
  name: "test",
  dataDir: "/nonexistent",
  modelsDir: "/nonexistent",
  baseUrl: "http://127.0.0.1",
  mode: "server",
}

/** Returns the whole failure, as a log would show it. */
const failureWith = async (
  settings: unknown,
): Promise<{ readonly message: string; readonly all: string }> => {
  const open = openPostgres(Schema.decodeUnknownSync(Settings)(settings), {
    deployment,
    log: fakeLog(),
  })
  const exit = await Effect.runPromiseExit(Effect.scoped(open))
  const error = Exit.isFailure(exit)
    ? Option.getOrUndefined(Cause.findErrorOption(exit.cause))
    : undefined
  return {
    message: error?.message ?? "",
    all: `${JSON.stringify(error)} ${String(error)} ${JSON.stringify(error?.cause)}`,
  }
}

test("nobody listens: host, port and database are named, the password is not", async () => {
  const { message, all } = await failureWith({ url: "postgres://me:hunter2@127.0.0.1:1/shop" })
  expect(message).toMatch(/^the database 127\.0\.0\.1:1\/shop can't be used: .*ECONNREFUSED/)
  expect(all).not.toContain("hunter2")
})

test("a wrong password, and a database that is not there", async () => {
  const { url, close } = await openTestDatabase()
  const wrong = Object.assign(new URL(url), { password: "hunter2" })
  const { message, all } = await failureWith({ url: wrong.href })
  expect(message).toMatch(/can't be used: password authentication failed/)
  expect(all).not.toContain("hunter2")
  const elsewhere = Object.assign(new URL(url), { pathname: "/nowhere" })
  expect((await failureWith({ url: elsewhere.href })).message).toMatch(
    /\/nowhere can't be used: database "nowhere" does not exist/,
  )
  await close()
})

test("a server that does not answer is given up", async () => {
  const silent = createServer().listen(0, "127.0.0.1")
  await new Promise((resolve) => silent.once("listening", resolve))
  const { port } = silent.address() as { port: number }
  const { message } = await failureWith({
    url: `postgres://me@127.0.0.1:${port}/shop`,
    connectTimeoutMs: 200,
  })
  expect(message).toMatch(/shop can't be used: .*timeout/)
  silent.close()
})

test("an old server is refused by its version", () => {
  expect(refusalOf("db:5432/x", { number: 140_011, text: "14.11" })).toMatch(
    /PostgreSQL 14\.11, which is too old: 15 or newer/,
  )
  expect(refusalOf("db:5432/x", { number: Number.NaN, text: "?" })).toMatch(/too old/)
  expect(refusalOf("db:5432/x", { number: 150_000, text: "15.0" })).toBeUndefined()
})

test("the URL is a secret, and is checked without being repeated", () => {
  const decode = Schema.decodeUnknownResult(Settings)
  const good = decode({ url: "postgres://me:hunter2@host/db" })
  expect(JSON.stringify(Result.getOrThrow(good))).not.toContain("hunter2")
  const bad = decode({ url: "mysql://me:hunter2@host/db" })
  expect(Result.isFailure(bad) && String(bad.failure)).toMatch(/is no postgres:/)
  expect(String(bad)).not.toContain("hunter2")
  expect(Redacted.value(Result.getOrThrow(decode({})).url)).toBe("")
})

test("what waits for a connection has a maximum", async () => {
  const { url, close } = await openTestDatabase()
  const settings = Schema.decodeUnknownSync(Settings)({ url, maxConnections: 1, maxWaiting: 2 })
  const work = Effect.gen(function* () {
    const { database } = yield* openPostgres(settings, { deployment, log: fakeLog() })
    const one = () => Effect.exit(database.transaction(() => Effect.sleep("100 millis")))
    const exits = yield* Effect.forEach([1, 2, 3, 4, 5], one, { concurrency: "unbounded" })
    expect(exits.map(Exit.isSuccess)).toEqual([true, true, true, false, false])
  })
  await Effect.runPromise(Effect.scoped(work))
  await close()
})

test("ping says what is wrong", async () => {
  const { url, remove } = await openTestDatabase()
  const work = Effect.gen(function* () {
    const { ping } = yield* openPostgres(Schema.decodeUnknownSync(Settings)({ url }), {
      deployment,
      log: fakeLog(),
    })
    yield* ping.check
    yield* Effect.promise(remove)
    expect(
      yield* Effect.flip(
        Effect.retry(Effect.andThen(ping.check, Effect.fail("fine")), {
          times: 3,
          while: (reason) => reason === "fine" || !/does not exist/.test(reason),
        }),
      ),
    ).toMatch(/does not exist/)
  })
  await Effect.runPromise(Effect.scoped(work))
})

test("a statement that takes too long is stopped", async () => {
  const { url, close } = await openTestDatabase()
  const work = Effect.gen(function* () {
    const { database } = yield* openPostgres(
      Schema.decodeUnknownSync(Settings)({ url, statementTimeoutMs: 50 }),
      { deployment, log: fakeLog() },
    )
    const error = yield* Effect.flip(
      database.run(() => sql`select pg_sleep(5)`.execute(database.queries())),
    )
    expect(error.message).toMatch(/statement timeout/)
    const slow: Migrations = {
      "0001_slow": { up: async (db) => void (await sql`select pg_sleep(0.1)`.execute(db)) },
    }
    expect(yield* database.migrate("slow", slow)).toEqual(["0001_slow"])
  })
  await Effect.runPromise(Effect.scoped(work))
  await close()
})
