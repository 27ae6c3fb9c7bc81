import fc from "fast-check"
import { expect, it } from "vitest"
import { fakeClock } from "../../testing/fakes/clock.ts"
import { usageOf } from "../usage.ts"
import { makeMeter } from "./meter.ts"

it("keeps the last report of each model: reports are cumulative", () => {
  const reports = fc.array(
    fc.tuple(
      fc.constantFrom("a", "b"),
      fc.record({ inputTokens: fc.nat(100), outputTokens: fc.nat(100) }).map(usageOf),
    ),
    { maxLength: 20 },
  )
  fc.assert(
    fc.property(reports, (all) => {
      const meter = makeMeter(fakeClock())
      for (const [model, usage] of all) meter.meter(model, usage)
      expect(meter.used()).toEqual(Object.fromEntries(all))
    }),
  )
})

it("adds up the times of a stage and writes them as Server-Timing", () => {
  const clock = fakeClock()
  const meter = makeMeter(clock)
  clock.advance(40.5)
  meter.time("auth", 0.5)
  meter.time("queue", 1.234)
  meter.time("prefill", 30)
  meter.time("queue", 0.004)
  expect(meter.serverTiming()).toBe("auth;dur=0.5, queue;dur=1.24, prefill;dur=30, total;dur=40.5")
})

it("knows when each stage began and ended: parts are one stage", () => {
  const clock = fakeClock(1_000)
  const meter = makeMeter(clock)
  clock.advance(10)
  meter.time("queue", 4)
  clock.advance(20)
  meter.time("decode", 5)
  clock.advance(10)
  meter.time("decode", 5)
  expect([...meter.stages()]).toEqual([
    ["queue", { startMs: 1_006, endMs: 1_010, durationMs: 4 }],
    ["decode", { startMs: 1_025, endMs: 1_040, durationMs: 10 }],
  ])
})

it("says when the first token came, once, since the request began", () => {
  const clock = fakeClock()
  const meter = makeMeter(clock)
  meter.meter("m", usageOf({ inputTokens: 5 }))
  clock.advance(12)
  meter.meter("m", usageOf({ inputTokens: 5, outputTokens: 1 }))
  clock.advance(8)
  meter.meter("m", usageOf({ inputTokens: 5, outputTokens: 2 }))
  meter.time("decode", 8)
  expect(meter.serverTiming()).toBe("decode;dur=8, first_token;dur=12, total;dur=20")
  expect([...meter.stages().keys()]).toEqual(["decode"])
})
