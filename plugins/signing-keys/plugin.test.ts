import "reflect-metadata/lite"
import { Effect, Exit, Fiber, Layer, Schema, Scope } from "effect"
import { TestClock } from "effect/testing"
import { compactVerify, createLocalJWKSet, type JSONWebKeySet } from "jose"
import { container as root } from "tsyringe"
import { afterAll, beforeAll, expect, it } from "vitest"
import {
  type Deployment,
  PortError,
  provide,
  resolve,
  resolveAll,
  Tokens,
} from "../../core/index.ts"
import { makeSecrets } from "../../runtime/services/secrets.ts"
import { callPathFixture, fakeClock, fakeLog } from "../../testing/index.ts"
import type { KeyRing } from "./key-ring.ts"
import { plugin } from "./plugin.ts"
import { openReplicas } from "./testing/replicas.ts"
import { renewHourly } from "./upkeep.ts"

let fixture: Awaited<ReturnType<typeof openReplicas>>
beforeAll(async () => {
  fixture = await openReplicas()
})
afterAll(() => fixture?.close())

const open = (mode: Deployment["mode"], secret = "shared") => {
  const container = root.createChildContainer()
  const log = fakeLog()
  provide(container, Tokens.database, fixture.database)
  provide(container, Tokens.clock, fakeClock())
  provide(container, Tokens.log, log)
  provide(container, Tokens.secrets, makeSecrets(secret))
  provide(container, Tokens.deployment, {
    name: "test",
    dataDir: "/nonexistent",
    modelsDir: "/nonexistent",
    baseUrl: "http://localhost",
    mode,
  })
  const settings = Schema.decodeUnknownSync(plugin.settings)({})
  const instance = plugin.create(settings)
  instance.register?.(container)
  const scope = Scope.makeUnsafe()
  const [endpoint] = resolveAll(container, Tokens.endpoints)
  const asking = callPathFixture()
  return {
    log,
    ask: () => asking.ask(endpoint!, undefined, { caller: undefined }),
    start: () =>
      Effect.runPromise((instance.start?.(container) ?? Effect.void).pipe(Scope.provide(scope))),
    signer: () => resolve(container, Tokens.signer),
    stop: () => Effect.runPromise(Scope.close(scope, Exit.void)),
  }
}

it("publishes a key for each purpose as soon as it has started, and says 503 before", async () => {
  const server = open("server")
  expect(await server.ask()).toMatchObject({ status: 503, json: { code: "server_starting" } })
  await server.start()
  const answer = await server.ask()
  expect(answer).toMatchObject({ status: 200, headers: { "cache-control": "public, max-age=300" } })
  const { keys } = answer.json as JSONWebKeySet
  expect(keys.map((key) => Object.keys(key).sort())).toEqual(
    Array(2).fill(["alg", "crv", "kid", "kty", "use", "x"]),
  )
  expect(
    keys.every(
      (key) =>
        key.alg === "EdDSA" && key.use === "sig" && key.kty === "OKP" && key.crv === "Ed25519",
    ),
  ).toBe(true)
  const jws = await Effect.runPromise(server.signer().sign("receipt", { call_id: "c" }))
  expect(
    JSON.parse(
      new TextDecoder().decode(
        (await compactVerify(jws, createLocalJWKSet(answer.json as JSONWebKeySet))).payload,
      ),
    ),
  ).toEqual({ call_id: "c" })
  await server.stop()
})

it("a command makes no key unless it signs, and a server with another secret makes its own and says so", async () => {
  await fixture.empty()
  const command = open("command")
  await command.start()
  expect(await fixture.rows()).toEqual([])
  await Effect.runPromise(command.signer().sign("session", {}))
  expect(await fixture.rows()).toHaveLength(1)
  await command.stop()
  const server = open("server", "another")
  await server.start()
  expect(await fixture.rows()).toHaveLength(3)
  expect(server.log.lines.map((line) => line.level).sort()).toEqual(["info", "warn"])
  await server.stop()
})

it("renews every hour, a little later each time, also after a failure", async () => {
  const services = await Effect.runPromise(
    Layer.build(TestClock.layer()).pipe(Scope.provide(Scope.makeUnsafe())),
  )
  const run = Effect.runPromiseWith(services)
  const log = fakeLog()
  let turns = 0
  const load = Effect.suspend(() =>
    ++turns === 2 ? Effect.fail(new PortError({ port: "database", message: "down" })) : Effect.void,
  )
  const ring = { load, current: () => Effect.succeed({}), erase: Effect.void } as unknown as KeyRing
  const fiber = Effect.runForkWith(services)(
    Effect.scoped(
      Effect.andThen(
        renewHourly(ring, log, () => 0.5),
        Effect.never,
      ),
    ),
  )
  await run(TestClock.adjust("62 minutes"))
  expect(turns).toBe(0)
  for (let hour = 1; hour <= 4; hour++) await run(TestClock.adjust("63 minutes"))
  await run(Fiber.interrupt(fiber))
  expect(turns).toBe(4)
  expect(log.lines.map((line) => line.level)).toEqual(["warn"])
})

it("says which setting is wrong", () => {
  expect(() => Schema.decodeUnknownSync(plugin.settings)({ rotateDays: 0 })).toThrow()
  expect(Schema.decodeUnknownSync(plugin.settings)({})).toEqual({ rotateDays: 30 })
})
