import "reflect-metadata/lite"
import { Effect, Schema } from "effect"
import { sql } from "kysely"
import { container } from "tsyringe"
import { expect, test } from "vitest"
import { provide, resolve, resolveAll, Tokens } from "../../core/tokens.ts"
import { fakeLog } from "../../testing/fakes/log.ts"
import { fakeMetrics } from "../../testing/fakes/metrics.ts"
import { openTestDatabase } from "../../testing/postgres.ts"
import { plugin } from "./plugin.ts"

test("start provides the database and its ping, for as long as the Scope is open", async () => {
  const { url, close } = await openTestDatabase()
  const fixture = container.createChildContainer()
  provide(fixture, Tokens.log, fakeLog())
  provide(fixture, Tokens.metrics, fakeMetrics())
  provide(fixture, Tokens.deployment, {
    name: "shop",
    dataDir: "/nonexistent",
    modelsDir: "/nonexistent",
    baseUrl: "http://127.0.0.1",
    mode: "server",
  })
  const work = Effect.gen(function* () {
    yield* plugin.create(Schema.decodeUnknownSync(plugin.settings)({ url })).start!(fixture)
    const database = resolve(fixture, Tokens.database)
    const { rows } = yield* database.run(() =>
      sql`select current_setting('application_name') as name`.execute(database.queries()),
    )
    expect(rows).toEqual([{ name: "rakit serve shop" }])
    const [ping] = resolveAll(fixture, Tokens.healthChecks)
    yield* ping!.check
    return database
  })
  const database = await Effect.runPromise(Effect.scoped(work))
  const late = await Effect.runPromise(
    Effect.flip(database.run(() => sql`select 1`.execute(database.queries()))),
  )
  expect(late).toMatchObject({ _tag: "PortError", port: "database" })
  await close()
})
