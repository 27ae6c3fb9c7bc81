import { Effect } from "effect"
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest"
import { type Caller, isApiError } from "../../../core/index.ts"
import { sweepExpired } from "../sweeper.ts"
import { type ApiFixture, openApiFixture } from "../testing/api-fixture.ts"
import { keyRequests, refusal } from "../testing/key-requests.ts"

let api: ApiFixture
let ada: Caller
let keys: ReturnType<typeof keyRequests>
beforeAll(async () => {
  api = await openApiFixture({ testKeys: { models: ["svc-lyt"], rpd: 50 } })
})
afterAll(() => api?.close())
beforeEach(async () => {
  ada = await api.makeAccount()
  keys = keyRequests(api, ada)
})

const authenticated = (key: string) =>
  Effect.runPromise(
    api.identity
      .authenticate(key)
      .pipe(Effect.catch((error) => Effect.succeed(isApiError(error) ? error.code : error))),
  )
const inSeconds = (seconds: number) => Math.floor(api.clock.nowMs() / 1000) + seconds
const day = 86_400

describe("a key that expires", () => {
  it("is refused from then on, stays on the list, and may be given longer", async () => {
    const { id, key, expires_at } = await keys.create({ name: "k", expires_at: inSeconds(day) })
    expect(expires_at).toBe(inSeconds(day))
    expect(await authenticated(key)).toMatchObject({ keyId: id })
    api.clock.advance(day * 1000)
    expect(await authenticated(key)).toBe("authentication_error")
    api.clock.advance(60 * day * 1000)
    await Effect.runPromise(sweepExpired(api.deps.database, api.clock))
    expect((await keys.list()).json.data).toMatchObject([{ id, expires_at }])
    expect((await keys.patch(id, { expires_at: inSeconds(day) })).status).toBe(200)
    expect(await authenticated(key)).toMatchObject({ keyId: id })
    expect((await keys.patch(id, { name: "same" })).json.expires_at).toBe(inSeconds(day))
    expect((await keys.patch(id, { expires_at: null })).json.expires_at).toBe(null)
    expect((await api.audit({ target: id })).map(({ action }) => action)).toContain("key.update")
  })

  it.each([
    ["in the past", () => -1],
    ["now", () => 0],
    ["beyond all calendars", () => 1e12],
  ])("can't be made to expire %s", async (_, offset) => {
    const body = { name: "k", expires_at: inSeconds(offset()) }
    const asked = await api.ask("POST /dashboard/keys", { as: ada, body })
    expect(refusal(asked)).toEqual([400, "invalid_request_error", "expires_at"])
    const { id } = await keys.create()
    const { expires_at } = body
    expect(refusal(await keys.patch(id, { expires_at }))[2]).toBe("expires_at")
  })
})

describe("a key of some models", () => {
  it("reaches no other, and all again when the list is taken away", async () => {
    const { id, key, models } = await keys.create({ name: "k", models: ["svc-gt", "svc-gt"] })
    expect(models).toEqual(["svc-gt"])
    expect(await authenticated(key)).toMatchObject({ models: ["svc-gt"] })
    expect((await keys.patch(id, { models: ["svc-lyt"] })).json.models).toEqual(["svc-lyt"])
    expect(await authenticated(key)).toMatchObject({ models: ["svc-lyt"] })
    expect((await keys.patch(id, { models: null })).json.models).toBe(null)
    expect(await authenticated(key)).not.toHaveProperty("models")
  })

  it("keeps to what the operator allows test keys", async () => {
    const made = { name: "k", test: true, models: ["svc-lyt", "svc-gt"] }
    expect(await authenticated((await keys.create(made)).key)).toMatchObject({
      models: ["svc-lyt"],
    })
  })

  it.each([
    ["none", [], "models"],
    ["too many", Array(101).fill("svc-gt"), "models"],
    ["an unknown one", ["svc-gt", "nope"], "models[1]"],
    ["a number", [5], "models[0]"],
    ["a huge name", ["x".repeat(201)], "models[0]"],
  ])("can't name %s", async (_, models, param) => {
    const asked = await api.ask("POST /dashboard/keys", { as: ada, body: { name: "k", models } })
    expect(refusal(asked)).toEqual([400, "invalid_request_error", param])
  })

  it("names no adapter, as it reaches those of its models", async () => {
    const body = { name: "k", models: ["svc-gt:legal"] }
    const { json } = await api.ask("POST /dashboard/keys", { as: ada, body })
    expect(json.message).toBe("models[0]: keys go by the model, not by an adapter: name 'svc-gt'")
  })
})

it("lists the scopes that keys may have", async () => {
  const { status, json } = await api.ask("GET /dashboard/scopes", { as: ada })
  expect([status, json]).toEqual([
    200,
    { object: "list", data: ["chat.completions", "embeddings.create"] },
  ])
})
