import { Effect } from "effect"
import { afterAll, beforeAll, expect, it } from "vitest"
import { openTestDatabase } from "../../runtime/testing/test-database.ts"
import { sha256Of } from "./api-key.ts"
import { ensureFirstAccount } from "./first-account.ts"
import { makeKeyIssuer } from "./key-issuer.ts"
import { openTestHouse, type TestHouse } from "./test-house.ts"

let house: TestHouse
let issuer: ReturnType<typeof makeKeyIssuer>
beforeAll(async () => {
  house = await openTestHouse(await openTestDatabase())
  issuer = makeKeyIssuer(house.parts)
})
afterAll(() => house?.close())

it("says that the server must have started once", async () => {
  const error = await Effect.runPromise(Effect.flip(issuer.issue({ name: "early", test: false })))
  expect(error).toMatchObject({ _tag: "ApiError", code: "not_found" })
})

it("makes keys of the first account, or of a named one", async () => {
  await Effect.runPromise(ensureFirstAccount(house.parts))
  const live = await Effect.runPromise(issuer.issue({ name: " laptop ", test: false }))
  const test = await Effect.runPromise(issuer.issue({ name: "sandbox", test: true, email: "Admin@Rakit.Local" }))
  expect(live.key).toMatch(/^svc_live_/)
  expect(live.name).toBe("laptop")
  expect(test.key).toMatch(/^svc_test_/)
  expect(test.account).toBe(live.account)
  const rows = await house.tables.selectFrom("accounts_key").selectAll().where("id", "in", [live.id, test.id]).execute()
  for (const { id, key } of [live, test]) expect(rows.find((row) => row.id === id)?.sha256).toEqual(sha256Of(key))
  expect(rows.map((row) => row.mode).sort()).toEqual(["live", "test"])
})

it.each(["nobody@example.com", "no address"])("refuses an unknown e-mail: %s", async (email) => {
  expect(await Effect.runPromise(Effect.flip(issuer.issue({ email, name: "x", test: false })))).toMatchObject({ code: "not_found", param: "email" })
})

it.each(["", "   ", "x".repeat(101), "line\nbreak", "\u0000", "\ud800"])("refuses the name %j", async (name) => {
  expect(await Effect.runPromise(Effect.flip(issuer.issue({ name, test: false })))).toMatchObject({ code: "invalid_request_error", param: "name" })
})

it("counts characters of a name as people do", async () => {
  expect((await Effect.runPromise(issuer.issue({ name: "🔑".repeat(100), test: false }))).name).toHaveLength(200)
})
