import fc from "fast-check"
import { afterAll, beforeAll, expect, it } from "vitest"
import type { Caller } from "../../../core/index.ts"
import { runs } from "../../../testing/property.ts"
import { type ApiFixture, openApiFixture } from "../testing/api-fixture.ts"

let api: ApiFixture
beforeAll(async () => {
  api = await openApiFixture()
})
afterAll(() => api?.close())

/** A key in the model: what clients see, and what it may do. */
interface Known {
  readonly id: string
  readonly key: string
  name: string
  rpm: number
  cap: number
  revokedAt: number | null
}
interface Model {
  readonly as: Caller
  /** The newest first. */
  keys: Known[]
  changes: number
}
type Step = { readonly account: number } & (
  | { readonly do: "create"; readonly name: string; readonly rpm: number }
  | {
      readonly do: "change"
      readonly at: number
      readonly rpm?: number
      readonly cap?: number
      readonly name?: string
    }
  | { readonly do: "revoke"; readonly at: number }
  | { readonly do: "wait"; readonly ms: number }
  | { readonly do: "list"; readonly limit: number }
)

const account = fc.nat({ max: 1 })
const at = fc.nat({ max: 5 })
const name = fc.constantFrom("a", "b", "c")
const rpm = fc.integer({ min: 1, max: 4 })
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ account, do: fc.constant("create" as const), name, rpm }) },
  {
    weight: 3,
    arbitrary: fc.record(
      {
        account,
        do: fc.constant("change" as const),
        at,
        rpm,
        cap: fc.constantFrom(0, 0.5, 7),
        name,
      },
      { requiredKeys: ["account", "do", "at"] },
    ),
  },
  { weight: 2, arbitrary: fc.record({ account, do: fc.constant("revoke" as const), at }) },
  {
    weight: 1,
    arbitrary: fc.record({
      account,
      do: fc.constant("wait" as const),
      ms: fc.constantFrom(1, 2_999, 60_000),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      account,
      do: fc.constant("list" as const),
      limit: fc.integer({ min: 1, max: 3 }),
    }),
  },
)

const seen = ({ id, name, rpm, cap, revokedAt }: Known) => ({ id, name, rpm, cap, revokedAt })
// biome-ignore lint/suspicious/noExplicitAny: JSON
const seenOf = (json: any) => ({
  id: json.id,
  name: json.name,
  rpm: json.limits.rpm,
  cap: json.limits.monthly_cap_idr,
  revokedAt: json.revoked_at,
})

/** Reads all pages of the list. */
const readList = async (as: Caller, limit: number) => {
  const all: unknown[] = []
  for (let after = ""; ; ) {
    const { json } = await api.ask(
      `GET /dashboard/keys?limit=${limit}${after && `&after=${after}`}`,
      { as },
    )
    expect(json.data.length).toBeLessThanOrEqual(limit)
    expect([json.first_id, json.last_id]).toEqual([
      json.data[0]?.id ?? null,
      json.data.at(-1)?.id ?? null,
    ])
    all.push(...json.data.map(seenOf))
    if (!json.has_more) return all
    expect(json.data).toHaveLength(limit)
    after = json.last_id
  }
}

const change = async (
  model: Model,
  target: Known,
  { rpm, cap, name }: Extract<Step, { do: "change" }>,
) => {
  const limits = {
    ...(rpm !== undefined && { rpm }),
    ...(cap !== undefined && { monthly_cap_idr: cap }),
  }
  const { status, json } = await api.ask(`PATCH /dashboard/keys/${target.id}`, {
    as: model.as,
    body: { limits, ...(name !== undefined && { name }) },
  })
  if (target.revokedAt !== null) return void expect([status, json.code]).toEqual([409, "conflict"])
  const after = {
    ...target,
    rpm: rpm ?? target.rpm,
    cap: cap ?? target.cap,
    name: name ?? target.name,
  }
  if (JSON.stringify(after) !== JSON.stringify(target)) model.changes++
  Object.assign(target, after)
  expect([status, seenOf(json)]).toEqual([200, seen(target)])
}

const run = async (model: Model, step: Step) => {
  const { as, keys } = model
  const target = "at" in step ? keys[step.at] : undefined
  if (step.do === "wait") api.clock.advance(step.ms)
  if (step.do === "list") expect(await readList(as, step.limit)).toEqual(keys.map(seen))
  if (step.do === "create") {
    const { json } = await api.ask("POST /dashboard/keys", {
      as,
      body: { name: step.name, limits: { rpm: step.rpm } },
    })
    model.keys = [
      {
        id: json.id,
        key: json.key,
        name: step.name,
        rpm: step.rpm,
        cap: 1_000_000,
        revokedAt: null,
      },
      ...keys,
    ]
    model.changes++
  }
  if (step.do === "change" && target) await change(model, target, step)
  if (step.do === "revoke" && target) {
    if (target.revokedAt === null) model.changes++
    target.revokedAt ??= Math.floor(api.clock.nowMs() / 1000)
    expect(seenOf((await api.ask(`DELETE /dashboard/keys/${target.id}`, { as })).json)).toEqual(
      seen(target),
    )
  }
}

it("keys of two accounts live as the model says, whatever is done to them, and every change is on record", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 25 }), async (steps) => {
      const models: Model[] = [await api.makeAccount(), await api.makeAccount()].map((as) => ({
        as,
        keys: [],
        changes: 0,
      }))
      for (const step of steps) {
        await run(models[step.account]!, step)
        for (const { as, keys } of models)
          for (const { key, id, rpm, cap, revokedAt } of keys)
            expect(await api.authenticate(key)).toEqual(
              revokedAt === null
                ? expect.objectContaining({
                    keyId: id,
                    tenant: as.tenant,
                    limits: {
                      rpm,
                      rpd: 10_000,
                      concurrency: 10,
                      monthlyCapMicros: BigInt(cap * 1_000_000),
                      bodyMb: 50,
                    },
                  })
                : "authentication_error",
            )
      }
      for (const { as, keys, changes } of models) {
        expect(await readList(as, 2)).toEqual(keys.map(seen))
        expect(await api.audit({ actor: as.tenant.account })).toHaveLength(changes)
      }
    }),
    { numRuns: runs(30) },
  )
}, 60_000)
