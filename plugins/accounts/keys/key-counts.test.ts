import { Effect } from "effect"
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest"
import type { Caller } from "../../../core/index.ts"
import { type ApiFixture, openApiFixture } from "../testing/api-fixture.ts"

let api: ApiFixture
let ada: Caller
beforeAll(async () => {
  api = await openApiFixture()
})
afterAll(() => api?.close())
beforeEach(async () => {
  ada = await api.makeAccount()
})

const create = (name = "k") => api.ask("POST /dashboard/keys", { as: ada, body: { name } })
const revoke = (id: string) => api.ask(`DELETE /dashboard/keys/${id}`, { as: ada })
const list = (query = "") => api.ask(`GET /dashboard/keys${query}`, { as: ada })
const refusal = ({ status, json }: Awaited<ReturnType<typeof list>>) => [
  status,
  json.code,
  json.param,
]

describe("how many", () => {
  it("at most 100 keys of an account work, also when they are made at once", async () => {
    const replies = await Promise.all(
      Array.from({ length: 103 }, (_, n) =>
        api.ask("POST /dashboard/keys", { as: ada, body: { name: `k${n}` } }),
      ),
    )
    expect(
      replies
        .map(({ status }) => status)
        .sort()
        .slice(99),
    ).toEqual([201, 409, 409, 409])
    const { json } = await list("?limit=1")
    await revoke(json.first_id)
    expect((await create()).status).toBe(201)
    expect(
      refusal(await api.ask("POST /dashboard/keys", { as: ada, body: { name: "one more" } })),
    ).toEqual([409, "conflict", null])
    expect(
      (
        await api.ask("POST /dashboard/keys", {
          as: await api.makeAccount(),
          body: { name: "another's" },
        })
      ).status,
    ).toBe(201)
  })

  it("an Idempotency-Key makes one", async () => {
    const ask = (name: string) =>
      api.ask("POST /dashboard/keys", {
        as: ada,
        body: { name },
        idempotencyKey: `i-${ada.tenant.account}`,
      })
    const [first, second] = [await ask("a"), await ask("a")]
    expect(second.json).toEqual(first.json)
    expect((await list()).json.data).toHaveLength(1)
    expect(refusal(await ask("b"))).toEqual([409, "conflict", "Idempotency-Key"])
  })
})

describe("keys of the playground", () => {
  const make = (as = ada) => api.ask("POST /dashboard/playground-key", { as })

  it("live for 15 minutes, on no list, cached or not", async () => {
    const { status, json } = await make()
    const endsMs = api.clock.nowMs() + 15 * 60_000
    expect([status, json]).toEqual([
      201,
      expect.objectContaining({
        object: "api_key",
        test: false,
        expires_at: Math.floor(endsMs / 1000),
        revoked_at: null,
        key: expect.stringMatching(/^svc_live_/),
      }),
    ])
    expect((await list()).json.data).toEqual([])
    expect(refusal(await list(`?after=${json.id}`))).toEqual([
      400,
      "invalid_request_error",
      "after",
    ])
    api.clock.advance(15 * 60_000 - 1)
    expect(await api.authenticate(json.key)).toMatchObject({ tenant: ada.tenant, keyId: json.id })
    api.clock.advance(1)
    expect(await api.authenticate(json.key)).toBe("authentication_error")
    expect(
      refusal(
        await api.ask(`PATCH /dashboard/keys/${json.id}`, {
          as: ada,
          body: { limits: { rpm: 9 } },
        }),
      ),
    ).toEqual([404, "not_found", null])
  })

  it("at most 10 work; the oldest gives way", async () => {
    const made: { readonly id: string; readonly key: string }[] = []
    for (let n = 0; n < 12; n++) made.push((await make()).json)
    const works = await Promise.all(
      made.map(async ({ key }) => typeof (await api.authenticate(key)) === "object"),
    )
    expect(works).toEqual([false, false, ...Array(10).fill(true)])
    expect(await api.audit({ target: made[0]?.id })).toMatchObject([
      { action: "key.create", after: { playground: true } },
      { action: "key.expire" },
    ])
    api.clock.advance(15 * 60_000)
    // what one began goes on, as a batch takes longer; not what a revoked one began
    const resumed = () => Effect.runPromise(api.identity.resume(made[0]?.id ?? ""))
    expect(await resumed()).toMatchObject({ tenant: ada.tenant, keyId: made[0]?.id })
    await make()
    expect(await api.audit({ target: made[11]?.id })).toHaveLength(1)
  })

  it("count toward no limit of ordinary keys, and can be revoked", async () => {
    const { json } = await make()
    expect((await revoke(json.id)).json).toMatchObject({
      id: json.id,
      revoked_at: expect.any(Number),
    })
    expect(await api.authenticate(json.key)).toBe("authentication_error")
  })
})
