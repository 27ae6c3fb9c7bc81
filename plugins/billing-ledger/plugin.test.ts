import "reflect-metadata/lite"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Deferred, Effect, Exit, Schema, Scope } from "effect"
import { sql } from "kysely"
import { container } from "tsyringe"
import { afterAll, beforeAll, expect, it } from "vitest"
import {
  type Database,
  type Deployment,
  PortError,
  provide,
  resolve,
  systemClock,
  Tokens,
} from "../../core/index.ts"
import { fakeLog, fakeMetrics, fakeSigner } from "../../testing/index.ts"
import { openTestDatabase, type TestDatabase } from "../../testing/postgres.ts"
import { plugin } from "./plugin.ts"
import { Settings } from "./settings.ts"
import { plainCall, settlementOf } from "./testing/plain-ledger.ts"

const folder = mkdtempSync(join(tmpdir(), "rakit-ledger-"))
let test: TestDatabase
beforeAll(async () => {
  test = await openTestDatabase()
  await Effect.runPromise(test.database.migrate(plugin.name, plugin.migrations!))
})
afterAll(() => {
  rmSync(folder, { recursive: true })
  return test.close()
})

const start = async (
  mode: Deployment["mode"],
  settings: unknown,
  database: Database = test.database,
) => {
  const child = container.createChildContainer()
  const log = fakeLog()
  provide(child, Tokens.deployment, {
    name: "test",
    dataDir: folder,
    modelsDir: folder,
    baseUrl: "http://127.0.0.1:1",
    mode,
  })
  provide(child, Tokens.clock, systemClock)
  provide(child, Tokens.log, log)
  provide(child, Tokens.metrics, fakeMetrics())
  provide(child, Tokens.database, database)
  provide(child, Tokens.signer, fakeSigner())
  const scope = Scope.makeUnsafe()
  await Effect.runPromise(
    plugin.create(Schema.decodeUnknownSync(plugin.settings)(settings)).start!(child).pipe(
      Scope.provide(scope),
    ),
  )
  return {
    log,
    billing: resolve(child, Tokens.billing),
    stop: () => Effect.runPromise(Scope.close(scope, Exit.void)),
  }
}
const leases = async () => {
  const { rows } = await Effect.runPromise(
    test.database.run(() =>
      sql<{
        n: bigint
      }>`SELECT count(*) AS n FROM ledger_replica WHERE lease_until > ${new Date()}`.execute(
        test.database.queries(),
      ),
    ),
  )
  return rows[0]?.n
}

it("has a lease from start to stop when it serves, and none in a command", async () => {
  const [server, command] = [await start("server", {}), await start("command", {})]
  expect(await leases()).toBe(1n)
  expect(await Effect.runPromise(command.billing.balance("nobody"))).toEqual({
    balanceMicros: 0n,
    heldMicros: 0n,
  })
  await command.stop()
  await server.stop()
  expect(await leases()).toBe(0n)
})

it("goes on beating and sweeping after the database failed, and says so", async () => {
  let failures = 0
  const broken = { left: 0 }
  const flaky: Database = {
    ...test.database,
    run: (query) =>
      Effect.suspend(() => {
        if (broken.left-- <= 0) return test.database.run(query)
        failures++
        return Effect.fail(new PortError({ port: "database", message: "gone" }))
      }),
  }
  const server = await start("server", { heartbeatMs: 5, leaseMs: 10_000, sweepMs: 5 }, flaky)
  broken.left = 6
  await expect.poll(() => server.log.lines.length).toBe(6)
  expect(new Set(server.log.lines.map((line) => line.message))).toEqual(
    new Set([
      "the ledger's heartbeat failed; it will be tried again",
      "the ledger's sweep failed; it will be tried again",
    ]),
  )
  expect(failures).toBe(6)
  await Effect.runPromise(
    test.database.run(() => sql`DELETE FROM ledger_replica`.execute(test.database.queries())),
  )
  await expect.poll(leases).toBe(1n)
  await server.stop()
})

const stateOf = async (id: string) => {
  const { rows } = await Effect.runPromise(
    test.database.run(() =>
      sql<{
        state: string
      }>`SELECT state FROM ledger_call WHERE id = ${id}`.execute(test.database.queries()),
    ),
  )
  return rows[0]?.state
}

it.each([
  ["auto", "exclusive", "journal"],
  ["auto", "shared", "database"],
  ["database", "exclusive", "database"],
  ["journal", "shared", "journal"],
])("replyAfter: %s, with a database that is %s: the %s", async (replyAfter, kind, after) => {
  let gate: Effect.Effect<void> = Effect.void
  const server = await start(
    "server",
    { replyAfter },
    {
      ...test.database,
      isExclusive: kind === "exclusive",
      run: (query) =>
        Effect.andThen(
          Effect.suspend(() => gate),
          test.database.run(query),
        ),
    },
  )
  const call = plainCall("replies", systemClock)
  await Effect.runPromise(server.billing.admit(call))
  const opened = Deferred.makeUnsafe<void>()
  if (after === "journal") gate = Deferred.await(opened)
  await Effect.runPromise(server.billing.settle([settlementOf(call.id)]))
  expect(await stateOf(call.id)).toBe(after === "journal" ? "open" : "settled")
  await Effect.runPromise(Deferred.succeed(opened, undefined))
  await Effect.runPromise(server.billing.balance("replies"))
  expect(await stateOf(call.id)).toBe("settled")
  await server.stop()
})

it("says which setting is wrong", () => {
  expect(() => Schema.decodeUnknownSync(Settings)({ heartbeatMs: 20_000 })).toThrow(
    "at least twice heartbeatMs",
  )
})
