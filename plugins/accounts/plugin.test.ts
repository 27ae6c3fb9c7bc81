import "reflect-metadata/lite"
import { Effect, Exit, Schema, Scope } from "effect"
import { container as root } from "tsyringe"
import { afterAll, afterEach, beforeAll, expect, it } from "vitest"
import { type Billing, makeIds, provide, resolve, Tokens } from "../../core/index.ts"
import { openTestDatabase } from "../../runtime/testing/test-database.ts"
import { plugin } from "./plugin.ts"
import { openTestHouse, type TestHouse } from "./test-house.ts"

let house: TestHouse
beforeAll(async () => {
  house = await openTestHouse(await openTestDatabase())
})
afterEach(() => house.empty())
afterAll(() => house?.close())

const start = async (role: "serve" | "command", input: unknown = {}) => {
  const container = root.createChildContainer()
  provide(container, Tokens.database, house.database)
  provide(container, Tokens.billing, house.grants as unknown as Billing)
  provide(container, Tokens.clock, house.clock)
  provide(container, Tokens.ids, makeIds(house.clock.nowMs))
  provide(container, Tokens.log, house.log)
  provide(container, Tokens.deployment, { name: "test", dataDir: house.dataDir, modelsDir: house.dataDir, baseUrl: "http://localhost:8080", role })
  const scope = Scope.makeUnsafe()
  const started = plugin.start?.(container, Schema.decodeUnknownSync(plugin.settings)(input)) ?? Effect.void
  const exit = await Effect.runPromiseExit(started.pipe(Scope.provide(scope)))
  return { container, exit, stop: () => Effect.runPromise(Scope.close(scope, Exit.void)) }
}

it("provides identity, key issuer and first account, which work together", async () => {
  const { container, stop } = await start("serve", { defaultLimits: { rpm: 3 } })
  const apiKey = resolve(container, Tokens.firstAccount).created?.apiKey ?? ""
  const identity = resolve(container, Tokens.identity)
  expect(await Effect.runPromise(identity.authenticate(apiKey))).toMatchObject({ role: "admin", limits: { rpm: 3, rpd: 10_000 } })
  const issued = await Effect.runPromise(resolve(container, Tokens.keyIssuer).issue({ name: "sandbox", test: true }))
  expect(await Effect.runPromise(identity.authenticate(issued.key))).toMatchObject({ tenant: { account: issued.account, mode: "test" }, keyId: issued.id })
  await stop()
  const used = await house.tables.selectFrom("accounts_key").select("id").where("last_used_at", "is not", null).execute()
  expect(used).toHaveLength(2)
})

it("a command beside the server makes no account", async () => {
  const { container, exit, stop } = await start("command", { apiKey: "an-operators-own-key" })
  expect(Exit.isSuccess(exit)).toBe(true)
  expect(resolve(container, Tokens.firstAccount).created).toBeUndefined()
  expect(await house.tables.selectFrom("accounts_account").select("id").execute()).toEqual([])
  await stop()
})
