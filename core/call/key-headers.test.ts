import { Effect } from "effect"
import { describe, expect, it, vi } from "vitest"
import type { CallPathFixture } from "../../testing/index.ts"
import { apiError, PortError } from "../errors.ts"
import { makeMeter } from "./meter.ts"
import { startMicros, useCallFixture, whole } from "./testing/fixture.ts"

const calls = useCallFixture()

const failing = () => Effect.fail(apiError("backend_error"))
const billingIsDown = Effect.fail(new PortError({ port: "billing", message: "down" }))
const callId = expect.stringMatching(/^[0-9a-f-]{36}$/)
const rate = {
  "x-ratelimit-limit-requests": "60",
  "x-ratelimit-remaining-requests": expect.any(String),
  "x-ratelimit-reset-requests": expect.any(String),
}
const timing = expect.stringMatching(/^auth;dur=0\.5, (.*, )?total;dur=/)
const timedMeter = () => {
  const meter = makeMeter(calls.fixture.clock)
  meter.time("auth", 0.5)
  return meter
}
const ask = (body: unknown, more: Parameters<CallPathFixture["ask"]>[2] = {}, answer = whole(10)) =>
  calls.fixture.ask(calls.endpoint(answer), body, { meter: timedMeter(), ...more })

describe("what counts as an error of the key without being a call", () => {
  const noted = async (...args: Parameters<typeof ask>) => {
    const noteRefused = vi.fn()
    Object.assign(calls.fixture.billing, { noteRefused })
    await ask(...args)
    return noteRefused.mock.calls.map(([{ caller, endpoint, model }]) => [
      caller.keyId,
      endpoint,
      model,
    ])
  }
  const key = expect.any(String)

  it("is a wrong body, an unknown field's type, a scope that is missing", async () => {
    expect(await noted({ n: "x" })).toEqual([[key, "test", undefined]])
    expect(await noted({ n: "x", model: "svc-lyt" })).toEqual([[key, "test", "svc-lyt"]])
    expect(await noted({ n: "x", model: "made up" })).toEqual([[key, "test", undefined]])
    const caller = { ...calls.fixture.caller, scopes: ["other"] }
    expect(await noted({ n: 1 }, { caller })).toEqual([[key, "test", undefined]])
  })

  it("is no call, no dry run, no refusal by a limit, and no fault of ours", async () => {
    const { caller } = calls.fixture
    const full = { ...caller, limits: { ...caller.limits, concurrency: 0 } }
    expect(await noted({ n: 1 })).toEqual([])
    expect(await noted({ n: "x" }, { dryRun: true })).toEqual([])
    expect(await noted({ n: 1 }, { caller: full })).toEqual([])
    expect(await noted({ n: 1 }, {}, failing)).toEqual([])
    const unknown = () => Effect.fail(apiError("model_not_found"))
    expect(await noted({ n: 1 }, {}, unknown)).toEqual([])
  })
})

describe("every answer to a key shows call id, cost, stages and rate", () => {
  it.each<[string, number, string, () => ReturnType<typeof ask>]>([
    ["a call", 200, "1500.06", () => ask({ n: 1 })],
    ["a dry run", 200, "0", () => ask({ n: 1 }, { dryRun: true })],
    ["a wrong body", 400, "0", () => ask({ n: "x" })],
    ["a wrong body of a dry run", 400, "0", () => ask({ n: "x" }, { dryRun: true })],
    [
      "a scope that does not reach",
      403,
      "0",
      () => ask({ n: 1 }, { caller: { ...calls.fixture.caller, scopes: ["other"] } }),
    ],
    [
      "a limit",
      429,
      "0",
      () =>
        ask(
          { n: 1 },
          {
            caller: {
              ...calls.fixture.caller,
              limits: { ...calls.fixture.caller.limits, concurrency: 0 },
            },
          },
        ),
    ],
    ["a failed model", 500, "0", () => ask({ n: 1 }, {}, failing)],
    ["a wrong Idempotency-Key", 400, "0", () => ask({ n: 1 }, { idempotencyKey: "a b" })],
  ])("%s", async (_, status, cost, asking) => {
    const { headers, ...answer } = await asking()
    expect(answer.status).toBe(status)
    expect(headers).toMatchObject({
      ...rate,
      "x-call-id": callId,
      "x-cost-idr": cost,
      "server-timing": timing,
    })
  })

  it("a replayed reply, too", async () => {
    await ask({ n: 1 }, { idempotencyKey: "k" })
    const { headers } = await ask({ n: 1 }, { idempotencyKey: "k" })
    expect(headers).toMatchObject({
      ...rate,
      "idempotent-replayed": "true",
      "x-call-id": callId,
      "x-cost-idr": "0",
      "server-timing": timing,
    })
  })

  it("at Rp0, too", async () => {
    await Effect.runPromise(
      calls.fixture.billing.adjust({
        id: "g",
        account: "acct_1",
        amountMicros: -startMicros,
        reason: "",
      }),
    )
    expect(await ask({ n: 1 })).toMatchObject({
      status: 402,
      headers: { ...rate, "x-call-id": callId, "x-cost-idr": "0", "server-timing": timing },
    })
  })
})

describe("when billing is down", () => {
  it("a refusal keeps its reason", async () => {
    vi.spyOn(calls.fixture.billing, "admit").mockReturnValue(billingIsDown)
    expect(await ask({ n: "x" })).toMatchObject({
      status: 400,
      json: { param: "n" },
      headers: { "x-call-id": callId, "x-cost-idr": "0" },
    })
  })

  it("a call that could not be settled has its id, and no cost, as nobody knows whether it was paid", async () => {
    vi.spyOn(calls.fixture.billing, "settle").mockReturnValue(billingIsDown)
    const { status, headers } = await ask({ n: 1 })
    expect(status).toBe(500)
    expect(headers).toMatchObject({ ...rate, "x-call-id": calls.last()?.request.id })
    expect(headers).not.toHaveProperty("x-cost-idr")
  })
})
