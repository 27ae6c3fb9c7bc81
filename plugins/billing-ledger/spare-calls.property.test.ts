import fc from "fast-check"
import { afterEach, beforeEach, expect, it, vi } from "vitest"
import { settlementOf } from "./testing/plain-ledger.ts"
import { type Fixture, openFixture } from "./testing/spare-calls-fixture.ts"

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

const step = fc.oneof(
  {
    weight: 12,
    arbitrary: fc.record({ take: fc.constantFrom(3n, 4n, 9n), keys: fc.constantFrom("a", "b") }),
  },
  { weight: 4, arbitrary: fc.record({ answer: fc.constant("admitted" as const) }) },
  { weight: 1, arbitrary: fc.record({ answer: fc.constantFrom("refused", "lost") }) },
  { weight: 2, arbitrary: fc.record({ pass: fc.integer({ min: 1, max: 300 }) }) },
  { weight: 1, arbitrary: fc.record({ giveBack: fc.constantFrom("a", "b") }) },
)

/** Runs the step; returns the spare call that was used, if any. */
const runStep = (
  { spares, call, answer, admitted, pass }: Fixture,
  one: typeof step extends fc.Arbitrary<infer Step> ? Step : never,
): readonly [used: string, holdMicros: bigint] | undefined => {
  if ("pass" in one) pass(one.pass)
  if ("giveBack" in one) spares.giveWay(call(0n, {}, one.giveBack), "balance")
  if ("answer" in one) {
    const refused = { ...admitted(), refused: { reason: "rpm" as const, retryAfterMs: 1 } }
    answer({ admitted: admitted(), refused, lost: undefined }[one.answer])
  }
  if (!("take" in one)) return
  const request = call(one.take, {}, one.keys)
  if (!spares.take(request)) return
  const { spare } = spares.spent(settlementOf(request.id))
  return spare && [spare.id, one.take]
}

it("uses or gives back each that was admitted, once, and uses none after its time", () => {
  let usedOfAll = 0
  fc.assert(
    fc.property(fc.array(step, { minLength: 20, maxLength: 80 }), (steps) => {
      const fixture = openFixture(8)
      const { asked, givenBack, pass, clock } = fixture
      const admitted: string[] = []
      const used: string[] = []
      const askedAt: number[] = []
      let answered = 0
      for (const one of steps) {
        const found = runStep(fixture, one)
        const at = asked.findIndex(({ id }) => id === found?.[0])
        if (found) {
          expect(clock.monotonicMs() - askedAt[at]!).toBeLessThan(250)
          expect(asked[at]!.holdMicros).toBeGreaterThanOrEqual(found[1])
          used.push(found[0])
        }
        while (askedAt.length < asked.length) askedAt.push(clock.monotonicMs())
        if (!("answer" in one)) continue
        if (one.answer === "admitted") admitted.push(...asked.slice(answered).map(({ id }) => id))
        answered = asked.length
      }
      pass(1_000)
      expect([...used, ...givenBack].sort()).toEqual(admitted.sort())
      usedOfAll += used.length
    }),
    { numRuns: 300 },
  )
  expect(usedOfAll, "the steps use some").toBeGreaterThan(100)
})
