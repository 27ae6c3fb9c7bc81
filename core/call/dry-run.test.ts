import { Effect } from "effect"
import { describe, expect, it } from "vitest"
import { usageOf } from "../usage.ts"
import { model, startMicros, useCallFixture, whole } from "./testing/fixture.ts"

const calls = useCallFixture()
const { endpoint, balance } = calls

describe("a dry run", () => {
  it("says the worst case, holds and runs nothing, and counts for RPM only", async () => {
    const answer = await calls.fixture.ask(endpoint(whole(10)), { n: 1 }, { dryRun: true })
    expect(answer.json).toEqual({
      object: "dry_run",
      endpoint: "/v1/test",
      model,
      input_tokens: 1_000_000,
      max_output_tokens: 1_000_000,
      cost_idr: 7500,
      limits: {
        rpm: 60,
        rpm_remaining: 59,
        rpd: 10_000,
        concurrency: 10,
        monthly_cap_idr: 1_000_000,
        body_mb: 50,
      },
      would_succeed: true,
    })
    expect(calls.steps).toEqual(["plan", "admit rpm", "admit peek"])
    expect(await balance()).toEqual({ balanceMicros: startMicros, heldMicros: 0n })
  })

  it("says when the key's monthly cap would not do", async () => {
    const caller = {
      ...calls.fixture.caller,
      limits: { ...calls.fixture.caller.limits, monthlyCapMicros: 7_499_999_999n },
    }
    expect(
      await calls.fixture.ask(endpoint(whole(10)), { n: 1 }, { dryRun: true, caller }),
    ).toMatchObject({
      status: 200,
      json: { would_succeed: false },
    })
  })

  it("says what a plan forecasts in place of its worst case", async () => {
    const bound = { [model]: usageOf({ inputTokens: 7, outputTokens: 3 }) }
    const forecast = (wouldSucceed: boolean, costMicros: bigint) =>
      Effect.succeed({ bound, costMicros, wouldSucceed, more: { lines: 2 } })
    const asking = (wouldSucceed: boolean, costMicros: bigint) =>
      calls.fixture.ask(
        {
          ...endpoint(whole(10)),
          plan: () =>
            Effect.succeed({
              bound: {},
              run: Effect.die("ran"),
              forecast: forecast(wouldSucceed, costMicros),
            }),
        },
        { n: 1 },
        { dryRun: true },
      )
    expect((await asking(true, 5_000_000n)).json).toMatchObject({
      input_tokens: 7,
      max_output_tokens: 3,
      cost_idr: 5,
      lines: 2,
      would_succeed: true,
    })
    expect((await asking(false, 5_000_000n)).json).toMatchObject({ would_succeed: false })
    expect((await asking(true, startMicros + 1n)).json).toMatchObject({ would_succeed: false })
  })

  it("says when the balance would not do, and refuses bad input", async () => {
    await Effect.runPromise(
      calls.fixture.billing.adjust({
        id: "g",
        account: "acct_1",
        amountMicros: -startMicros,
        reason: "",
      }),
    )
    expect(await calls.fixture.ask(endpoint(whole(10)), { n: 1 }, { dryRun: true })).toMatchObject({
      status: 200,
      json: { would_succeed: false },
    })
    expect(
      await calls.fixture.ask(endpoint(whole(10)), { n: "x" }, { dryRun: true }),
    ).toMatchObject({
      status: 400,
      json: { param: "n" },
    })
  })
})
