import { Effect } from "effect"
import { afterAll, beforeAll, expect, it } from "vitest"
import { sha256Of } from "./api-key.ts"
import { makeKeyIssuer } from "./key-issuer.ts"
import { type ApiFixture, openApiFixture } from "./testing/api-fixture.ts"

let api: ApiFixture
let issuer: ReturnType<typeof makeKeyIssuer>
let first: string
beforeAll(async () => {
  api = await openApiFixture()
  issuer = makeKeyIssuer(api.deps)
})
afterAll(() => api?.close())

const run = Effect.runPromise
const refusal = (effect: Effect.Effect<unknown, unknown>) => run(Effect.flip(effect))

it("says that the server must have started once", async () => {
  for (const work of [issuer.issue({ name: "early", test: false }), issuer.list({})])
    expect(await refusal(work)).toMatchObject({ _tag: "ApiError", code: "not_found" })
  first = (await api.makeAccount({ email: "admin@rakit.local", role: "admin" })).tenant.account
  await api.tables
    .updateTable("accounts_account")
    .set({ is_first: true })
    .where("id", "=", first)
    .execute()
})

it("makes keys of the first account, or of a named one, on record", async () => {
  const live = await run(issuer.issue({ name: " laptop ", test: false }))
  const test = await run(
    issuer.issue({
      name: "sandbox",
      test: true,
      email: "Admin@Rakit.Local",
      scopes: ["chat.completions"],
    }),
  )
  expect([live.key.slice(0, 9), test.key.slice(0, 9)]).toEqual(["svc_live_", "svc_test_"])
  expect([live.name, live.account, test.account]).toEqual(["laptop", first, first])
  const rows = await api.tables
    .selectFrom("accounts_key")
    .selectAll()
    .where("id", "in", [live.id, test.id])
    .orderBy("seq")
    .execute()
  expect(rows.map(({ sha256, mode, scopes }) => [sha256, mode, scopes])).toEqual([
    [sha256Of(live.key), "live", ["*"]],
    [sha256Of(test.key), "test", ["chat.completions"]],
  ])
  expect(await api.audit({ actor: "cli" })).toMatchObject([
    {
      action: "key.create",
      target: live.id,
      before: null,
      after: { account: first, name: "laptop", test: false, scopes: ["*"] },
    },
    { action: "key.create", target: test.id, after: { name: "sandbox", test: true } },
  ])
})

it("lists the newest first, never the key itself", async () => {
  const { tenant } = await api.makeAccount({ email: "ada@example.com" })
  const made = []
  for (const name of ["a", "b"])
    made.push(await run(issuer.issue({ name, test: false, email: "ada@example.com" })))
  const listed = await run(issuer.list({ email: "ADA@example.com" }))
  const [a, b] = made
  const shown = {
    account: tenant.account,
    test: false,
    scopes: ["*"],
    createdMs: api.clock.nowMs(),
    lastUsedMs: undefined,
    revokedMs: undefined,
  }
  expect(listed).toEqual([
    { ...shown, id: b?.id, name: "b", prefix: b?.key.slice(0, 12) },
    { ...shown, id: a?.id, name: "a", prefix: a?.key.slice(0, 12) },
  ])
})

it("revokes any key, once, on record", async () => {
  const { id, key } = await run(issuer.issue({ name: "k", test: false }))
  const revoked = await run(issuer.revoke(id))
  expect(revoked).toMatchObject({ id, name: "k", revokedMs: api.clock.nowMs() })
  api.clock.advance(10_000)
  expect(await run(issuer.revoke(id))).toEqual(revoked)
  expect(await api.authenticate(key)).toBe("authentication_error")
  expect((await api.audit({ target: id })).map(({ actor, action }) => [actor, action])).toEqual([
    ["cli", "key.create"],
    ["cli", "key.revoke"],
  ])
  for (const unknown of ["key_unknown", "", "\0", "x".repeat(200)])
    expect(await refusal(issuer.revoke(unknown))).toMatchObject({ code: "not_found" })
})

it.each(["nobody@example.com", "no address", "\0@example.com"])(
  "refuses an unknown e-mail: %j",
  async (email) => {
    for (const work of [issuer.issue({ email, name: "x", test: false }), issuer.list({ email })])
      expect(await refusal(work)).toMatchObject({ code: "not_found", param: "email" })
  },
)

it.each(["", "   ", "x".repeat(101), "line\nbreak", "\u0000", "\ud800"])(
  "refuses the name %j",
  async (name) => {
    expect(await refusal(issuer.issue({ name, test: false }))).toMatchObject({
      code: "invalid_request_error",
      param: "name",
    })
  },
)

it("refuses scopes that no key reaches", async () => {
  for (const scope of ["nope", "models.list", "dashboard.keys.list", ""])
    expect(
      await refusal(issuer.issue({ name: "x", test: false, scopes: ["chat.completions", scope] })),
    ).toMatchObject({ param: "scopes[1]" })
})

it("counts characters of a name as people do", async () => {
  expect((await run(issuer.issue({ name: "🔑".repeat(100), test: false }))).name).toHaveLength(200)
})
