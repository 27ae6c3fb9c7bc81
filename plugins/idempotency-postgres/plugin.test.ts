import "reflect-metadata/lite"
import { Effect, Exit, Schema, Scope } from "effect"
import { container as root } from "tsyringe"
import { afterAll, beforeAll, expect, it, vi } from "vitest"
import { provide, resolve, Tokens } from "../../core/index.ts"
import { makeSecrets } from "../../runtime/services/secrets.ts"
import { fakeClock, fakeLog } from "../../testing/index.ts"
import { openTestDatabase } from "../../testing/postgres.ts"
import { plugin } from "./plugin.ts"
import { keepMs } from "./postgres-idempotency.ts"

let test: Awaited<ReturnType<typeof openTestDatabase>>
beforeAll(async () => {
  test = await openTestDatabase()
  await Effect.runPromise(test.database.migrate(plugin.name, plugin.migrations ?? {}))
})
afterAll(() => test?.close())

const start = async (clock = fakeClock(), mode: "server" | "command" = "server") => {
  const container = root.createChildContainer()
  const log = fakeLog()
  provide(container, Tokens.database, test.database)
  provide(container, Tokens.clock, clock)
  provide(container, Tokens.log, log)
  provide(container, Tokens.secrets, makeSecrets("shared"))
  provide(container, Tokens.deployment, {
    name: "test",
    dataDir: "/nonexistent",
    modelsDir: "/nonexistent",
    baseUrl: "http://localhost",
    mode,
  })
  const scope = Scope.makeUnsafe()
  await Effect.runPromise(
    (
      plugin.create(Schema.decodeUnknownSync(plugin.settings)({})).start?.(container) ?? Effect.void
    ).pipe(Scope.provide(scope)),
  )
  return {
    store: resolve(container, Tokens.idempotency),
    log,
    stop: () => Effect.runPromise(Scope.close(scope, Exit.void)),
  }
}

it("remembers across restarts, and a server that starts sweeps what has expired", async () => {
  const clock = fakeClock()
  const tenant = { account: "acct_1", mode: "live" } as const
  const first = await start(clock, "command")
  await Effect.runPromise(first.store.begin(tenant, "k", "body"))
  await Effect.runPromise(
    first.store.finish(tenant, "k", { status: 201, json: { id: 1 }, callId: "call" }),
  )
  await first.stop()
  const second = await start(clock)
  expect(await Effect.runPromise(second.store.begin(tenant, "k", "body"))).toEqual({
    state: "done",
    reply: { status: 201, json: { id: 1 }, callId: "call" },
  })
  await second.stop()
  clock.advance(keepMs)
  const third = await start(clock)
  await vi.waitFor(() =>
    expect(third.log.lines).toEqual([
      {
        level: "debug",
        event: "idempotency.keys_swept",
        message: "expired idempotency keys swept",
        fields: { rows: 1 },
      },
    ]),
  )
  await third.stop()
})
