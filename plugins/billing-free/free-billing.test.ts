import { Effect } from "effect"
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { type AdmitRequest, defaultLimits } from "../../core/index.ts"
import { runSchedule, scheduleArbitrary } from "../../testing/contracts/billing/schedule.ts"
import { billingContract } from "../../testing/contracts/billing.ts"
import { fakeClock } from "../../testing/index.ts"
import { makeFreeBilling } from "./free-billing.ts"

billingContract("free", async () => {
  const clock = fakeClock()
  return { billing: makeFreeBilling(clock, 100), clock, money: false, close: async () => {} }
})

const request = (keyId: string, id: string): AdmitRequest => ({
  id,
  caller: {
    tenant: { account: "a", mode: "live" },
    keyId,
    scopes: ["*"],
    role: "user",
    limits: { ...defaultLimits, rpm: 2, rpd: 2 },
  },
  endpoint: "chat.completions",
  requestId: "r",
  holdMicros: 10n ** 30n,
  counts: "all",
})

describe("free billing", () => {
  it("does what the exact model does, apart from money", async () => {
    await fc.assert(
      fc.asyncProperty(scheduleArbitrary, async (steps) => {
        const clock = fakeClock()
        const seen = await runSchedule(steps, {
          billing: makeFreeBilling(clock, 100),
          clock,
          money: false,
        })
        for (const { step, expected, actual } of seen)
          expect({ step, seen: actual }).toEqual({ step, seen: expected })
      }),
    )
  })

  it("asks for no money", async () => {
    const billing = makeFreeBilling(fakeClock(), 100)
    await Effect.runPromise(billing.admit(request("k", "1")))
    expect(await Effect.runPromise(billing.balance("a"))).toEqual({
      balanceMicros: 9_000_000_000_000_000n,
      heldMicros: 0n,
    })
  })

  it("forgets the key that was idle longest, never one with a call in flight", async () => {
    const billing = makeFreeBilling(fakeClock(), 2)
    const admit = (key: string, id: string) =>
      Effect.runPromise(billing.admit(request(key, id)).pipe(Effect.map((rate) => rate.remaining)))
    const settle = (id: string) =>
      Effect.runPromise(
        billing.settle([{ id, outcome: "settled", costMicros: 0n, usage: {}, httpStatus: 200 }]),
      )
    await admit("busy", "1")
    await admit("idle", "2")
    await settle("2")
    await admit("third", "3")
    expect(await admit("busy", "4")).toBe(0)
    expect(await admit("idle", "5")).toBe(1)
  })
})
