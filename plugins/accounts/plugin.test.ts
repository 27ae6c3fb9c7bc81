import "reflect-metadata/lite"
import { Effect, Exit, Schema, Scope } from "effect"
import { container as root } from "tsyringe"
import { afterAll, afterEach, beforeAll, expect, it } from "vitest"
import {
  type Call,
  makeCatalogue,
  makeIds,
  provide,
  resolve,
  resolveAll,
  Tokens,
} from "../../core/index.ts"
import { makeSecrets } from "../../runtime/services/secrets.ts"
import { fakeBilling, fakeEntry, fakeMailer, fakeSigner } from "../../testing/index.ts"
import { openTestDatabase } from "../../testing/postgres.ts"
import { plugin } from "./plugin.ts"
import { type Fixture, openFixture } from "./testing/fixture.ts"

let fixture: Fixture
beforeAll(async () => {
  fixture = await openFixture(await openTestDatabase())
})
afterEach(() => fixture.empty())
afterAll(() => fixture?.close())

const start = async (mode: "server" | "command", input: unknown = {}) => {
  const container = root.createChildContainer()
  provide(container, Tokens.database, fixture.database)
  provide(container, Tokens.billing, fakeBilling(fixture.clock))
  provide(container, Tokens.signer, fakeSigner())
  provide(container, Tokens.secrets, makeSecrets("test"))
  provide(container, Tokens.mailer, fakeMailer())
  provide(container, Tokens.clock, fixture.clock)
  provide(container, Tokens.ids, makeIds(fixture.clock.nowMs))
  provide(container, Tokens.log, fixture.log)
  provide(container, Tokens.deployment, {
    name: "test",
    dataDir: fixture.dataDir,
    modelsDir: fixture.dataDir,
    baseUrl: "http://localhost:8080",
    mode,
  })
  const scope = Scope.makeUnsafe()
  const instance = plugin.create(Schema.decodeUnknownSync(plugin.settings)(input))
  instance.register?.(container)
  const started = instance.start?.(container) ?? Effect.void
  const exit = await Effect.runPromiseExit(started.pipe(Scope.provide(scope)))
  return { container, exit, stop: () => Effect.runPromise(Scope.close(scope, Exit.void)) }
}

it("provides identity, key issuer and first account, which work together", async () => {
  const { container, stop } = await start("server", { defaultLimits: { rpm: 3 } })
  const apiKey = resolve(container, Tokens.firstAccount).created?.apiKey ?? ""
  const identity = resolve(container, Tokens.identity)
  expect(await Effect.runPromise(identity.authenticate(apiKey))).toMatchObject({
    role: "admin",
    limits: { rpm: 3, rpd: 10_000 },
  })
  const issued = await Effect.runPromise(
    resolve(container, Tokens.keyIssuer).issue({ name: "sandbox", test: true }),
  )
  expect(await Effect.runPromise(identity.authenticate(issued.key))).toMatchObject({
    tenant: { account: issued.account, mode: "test" },
    keyId: issued.id,
  })
  await stop()
  const used = await fixture.tables
    .selectFrom("accounts_key")
    .select("id")
    .where("last_used_at", "is not", null)
    .execute()
  expect(used).toHaveLength(2)
})

it("a command beside the server makes no account", async () => {
  const { container, exit, stop } = await start("command", { apiKey: "an-operators-own-key" })
  expect(Exit.isSuccess(exit)).toBe(true)
  expect(resolve(container, Tokens.firstAccount).created).toBeUndefined()
  expect(await fixture.tables.selectFrom("accounts_account").select("id").execute()).toEqual([])
  await stop()
})

it("provides sessions and endpoints that work on what has started, and lets test keys do what the operator says", async () => {
  const { container, stop } = await start("server", {
    adminEmail: "root@example.com",
    adminPassword: "correct horse",
    locale: "id",
    testKeys: { models: ["svc-lyt"], rpd: 7 },
  })
  const endpoints = resolveAll(container, Tokens.endpoints)
  expect(new Set(endpoints.map(({ id }) => id)).size).toBe(endpoints.length)
  const login = endpoints.find(({ id }) => id === "dashboard.login")!
  const plan = login.plan({
    body: { email: "root@example.com", password: "correct horse" },
  } as Call<unknown>)
  const reply = await Effect.runPromise(Effect.scoped(Effect.flatMap(plan, ({ run }) => run)))
  const { token, account } = (
    reply as unknown as { json: { token: string; account: { id: string } } }
  ).json
  const caller = await Effect.runPromise(resolve(container, Tokens.sessions).authenticate(token))
  expect(caller).toMatchObject({ tenant: { account: account.id, mode: "live" }, role: "admin" })
  const [key, session] = [
    resolve(container, Tokens.firstAccount).created!.apiKey,
    resolve(container, Tokens.sessions),
  ]
  expect(await Effect.runPromise(Effect.flip(session.authenticate(key)))).toMatchObject({
    code: "authentication_error",
  })
  expect(
    await Effect.runPromise(Effect.flip(resolve(container, Tokens.identity).authenticate(token))),
  ).toMatchObject({ code: "authentication_error" })
  const sandbox = await Effect.runPromise(
    resolve(container, Tokens.keyIssuer).issue({ name: "sandbox", test: true }),
  )
  expect(
    await Effect.runPromise(resolve(container, Tokens.identity).authenticate(sandbox.key)),
  ).toMatchObject({ models: ["svc-lyt"], limits: { rpd: 7 } })
  expect(
    (await fixture.tables.selectFrom("accounts_account").select("locale").executeTakeFirst())
      ?.locale,
  ).toBe("id")
  await stop()
})

it("lets a key name models, with which their adapters go, and no adapter", async () => {
  const { container, stop } = await start("server")
  const entry = fakeEntry("chat", { adapters: [{ id: "legal", sources: [] }] })
  provide(container, Tokens.catalogue, makeCatalogue([entry]))
  const create = resolveAll(container, Tokens.endpoints).find(
    ({ id }) => id === "dashboard.keys.create",
  )!
  const { account } = await Effect.runPromise(
    resolve(container, Tokens.keyIssuer).issue({ name: "k", test: false }),
  )
  const made = (model: string) => {
    const call = { body: { name: "k", models: [model] }, caller: { tenant: { account } } }
    const plan = create.plan(call as unknown as Call<unknown>)
    return Effect.runPromiseExit(Effect.scoped(Effect.flatMap(plan, ({ run }) => run)))
  }
  expect(Exit.isSuccess(await made(entry.id))).toBe(true)
  // such a key would reach nothing: calls are judged by the model that they use
  expect(await made(`${entry.id}:legal`)).toMatchObject({
    cause: { reasons: [{ error: { code: "invalid_request_error", param: "models[0]" } }] },
  })
  await stop()
})
