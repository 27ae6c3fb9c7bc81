import fc from "fast-check"
import { expect, it } from "vitest"
import { type Usage, usageOf } from "../usage.ts"
import { makeMeter } from "./meter.ts"

it("keeps the largest report of each model, in whatever order they come", () => {
  const reports = fc.array(fc.tuple(fc.constantFrom("a", "b"), fc.record({ inputTokens: fc.nat(100), outputTokens: fc.nat(100), images: fc.nat(3) }).map(usageOf)), {
    maxLength: 20,
  })
  fc.assert(
    fc.property(reports, (all) => {
      const meter = makeMeter()
      for (const [model, usage] of all) meter.meter(model, usage)
      for (const model of ["a", "b"]) {
        const own = all.filter(([m]) => m === model).map(([, usage]) => usage)
        const most = (key: keyof Usage) => Math.max(...own.map((usage) => usage[key]))
        expect(meter.used()[model]).toEqual(
          own.length === 0 ? undefined : usageOf({ inputTokens: most("inputTokens"), outputTokens: most("outputTokens"), images: most("images") }),
        )
      }
    }),
  )
})

it("adds up the times of a stage and writes them as Server-Timing", () => {
  const meter = makeMeter()
  expect(meter.serverTiming()).toBe("")
  meter.time("queue", 1.234)
  meter.time("prefill", 30)
  meter.time("queue", 0.004)
  expect(meter.serverTiming()).toBe("queue;dur=1.24, prefill;dur=30")
})
