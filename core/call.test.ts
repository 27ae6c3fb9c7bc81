import { Effect } from "effect"
import { describe, expect, it } from "vitest"
import type { CallPathFixture } from "../testing/index.ts"
import {
  type Answering,
  holdMicros,
  inputMicros,
  model,
  startMicros,
  useCallFixture,
  used,
  whole,
} from "./call/testing/fixture.ts"
import type { Caller } from "./caller.ts"
import { formatRupiah } from "./money.ts"
import { usageOf } from "./usage.ts"

const calls = useCallFixture()
const { endpoint, balance, last } = calls

const withLimits = (limits: Partial<Caller["limits"]>): { caller: Caller } => ({
  caller: { ...calls.fixture.caller, limits: { ...calls.fixture.caller.limits, ...limits } },
})

describe("a call", () => {
  it("goes through its steps in order, and pays what the meter says", async () => {
    const answer = await calls.fixture.ask(endpoint(whole(10)), { n: 1 })
    expect(calls.steps).toEqual(["plan", "admit all", "ran", "settle settled"])
    expect(answer).toMatchObject({ status: 200, json: { n: 1 }, costMicros: inputMicros + 60_000n })
    expect(last()).toMatchObject({
      state: "settled",
      holdMicros,
      costMicros: inputMicros + 60_000n,
      settlement: { usage: { [model]: used(10) }, httpStatus: 200 },
    })
    expect(await balance()).toEqual({
      balanceMicros: startMicros - inputMicros - 60_000n,
      heldMicros: 0n,
    })
  })

  it("carries its headers", async () => {
    const { headers } = await calls.fixture.ask(endpoint(whole(10)), { n: 1 })
    expect(headers).toMatchObject({
      "x-call-id": "00000000-0000-7000-8000-000000000001",
      "x-ratelimit-limit-requests": "60",
      "x-ratelimit-remaining-requests": "59",
      "x-ratelimit-reset-requests": "1m0s",
      "x-cost-idr": "1500.06",
    })
    expect(headers["server-timing"]).toMatch(
      /^plan;dur=.*limits;dur=.*hold;dur=.*settle;dur=.*total;dur=/,
    )
  })

  it("never pays more than its hold", async () => {
    const greedy: Answering = (call) => {
      call.context.meter(model, usageOf({ outputTokens: 9_000_000 }))
      return Effect.succeed({ status: 200, json: {} })
    }
    await calls.fixture.ask(endpoint(greedy), { n: 1 })
    expect(last()).toMatchObject({ costMicros: holdMicros })
  })

  it("costs nothing with a test key, and half in a batch", async () => {
    const test: Caller = { ...calls.fixture.caller, tenant: { account: "acct_1", mode: "test" } }
    expect(await calls.fixture.ask(endpoint(whole(10)), { n: 1 }, { caller: test })).toMatchObject({
      costMicros: 0n,
    })
    expect(
      await calls.fixture.ask(endpoint(whole(10)), { n: 1 }, { priceFactor: 0.5 }),
    ).toMatchObject({
      costMicros: (inputMicros + 60_000n) / 2n,
    })
  })

  it("says what it costs as it goes on, never more than its hold", async () => {
    const costs: bigint[] = []
    const greedy: Answering = (call) =>
      Effect.sync(() => {
        for (const usage of [used(0), used(10), usageOf({ outputTokens: 9_000_000 })]) {
          call.context.meter(model, usage)
          costs.push(call.cost())
        }
        return { status: 200, json: {} }
      })
    expect(await calls.fixture.ask(endpoint(greedy), { n: 1 })).toMatchObject({
      headers: { "x-cost-idr": formatRupiah(holdMicros) },
    })
    expect(costs).toEqual([inputMicros, inputMicros + 60_000n, holdMicros])
  })

  it("takes its prices, its model and its end with it", async () => {
    await calls.fixture.ask(endpoint(whole(10)), { n: 1 })
    expect(last()?.request).toMatchObject({
      model,
      prices: { factor: 1, models: { [model]: { output: "6000" } } },
      expiresMs: calls.fixture.clock.nowMs() + 120_000,
    })
  })

  it("of a key that does not reach the model is 400, and holds nothing", async () => {
    const caller = { ...calls.fixture.caller, models: ["svc-prme"] }
    expect(await calls.fixture.ask(endpoint(whole(10)), { n: 1 }, { caller })).toMatchObject({
      status: 400,
      json: { code: "model_not_found", param: "model" },
    })
    expect(calls.fixture.billing.calls).toEqual([])
    expect(
      await calls.fixture.ask(
        endpoint(whole(10)),
        { n: 1 },
        { caller: { ...caller, models: [model] } },
      ),
    ).toMatchObject({ status: 200 })
  })

  it("of a public endpoint needs no caller and no billing", async () => {
    const answer = await calls.fixture.ask(
      endpoint(whole(10), { access: "public" }),
      { n: 1 },
      { caller: undefined },
    )
    expect(answer).toMatchObject({ status: 200, costMicros: undefined })
    expect(calls.steps).toEqual(["plan", "ran"])
  })
})

describe("a call is refused before anything is done", () => {
  const refusals: readonly [
    string,
    number,
    string,
    Parameters<CallPathFixture["ask"]>[1],
    object,
  ][] = [
    ["without a caller", 401, "authentication_error", { n: 1 }, { caller: undefined }],
    [
      "out of scope, before its shape",
      403,
      "permission_denied",
      { n: "x" },
      { scope: ["embeddings"] },
    ],
    ["of a wrong shape", 400, "invalid_request_error", { n: "x" }, {}],
    ["that is no object", 400, "invalid_request_error", [1], {}],
    ["over RPM", 429, "rate_limit_error", { n: 1 }, { rpm: 0 }],
    ["over RPD", 429, "rate_limit_error", { n: 1 }, { rpd: 0 }],
    ["over concurrency", 429, "concurrency_exceeded", { n: 1 }, { concurrency: 0 }],
    ["over the monthly cap", 402, "insufficient_quota", { n: 1 }, { monthlyCapMicros: 1n }],
  ]
  it.each(refusals)("%s", async (_, status, code, body, more) => {
    const { scope, ...limits } = more as { scope?: string[] }
    const caller =
      "caller" in more ? undefined : { ...withLimits(limits).caller, scopes: scope ?? ["test"] }
    const answer = await calls.fixture.ask(endpoint(whole(1)), body, { caller })
    expect(answer).toMatchObject({ status, json: { code } })
    expect(calls.steps).not.toContain("ran")
    expect(calls.fixture.billing.calls).toHaveLength(0)
    if (caller)
      expect(answer.headers).toMatchObject({
        "x-call-id": expect.any(String),
        "x-ratelimit-remaining-requests": expect.any(String),
      })
  })

  it("over the balance", async () => {
    await Effect.runPromise(
      calls.fixture.billing.adjust({
        id: "g",
        account: "acct_1",
        amountMicros: -startMicros + 1n,
        reason: "",
      }),
    )
    expect(await calls.fixture.ask(endpoint(whole(1)), { n: 1 })).toMatchObject({
      status: 402,
      json: { code: "insufficient_quota" },
    })
  })

  it("that needs an admin", async () => {
    expect(
      await calls.fixture.ask(endpoint(whole(1), { access: "admin" }), { n: 1 }),
    ).toMatchObject({
      status: 403,
    })
  })

  it.each(["account_suspended", "read_only_session"] as const)(
    "that changes something for %s; reading goes on",
    async (readOnly) => {
      const caller: Caller = { ...calls.fixture.caller, readOnly }
      for (const access of ["session", "admin", "key"] as const)
        for (const method of ["POST", "PATCH", "DELETE"] as const)
          expect(
            await calls.fixture.ask(endpoint(whole(1), { access, method }), { n: "x" }, { caller }),
          ).toMatchObject({ status: 403, json: { code: readOnly } })
      expect(
        await calls.fixture.ask(
          endpoint(whole(1), { access: "session", method: "GET" }),
          { n: 1 },
          { caller },
        ),
      ).toMatchObject({ status: 200 })
    },
  )
})
