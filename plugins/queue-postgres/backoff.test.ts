import fc from "fast-check"
import { expect, it } from "vitest"
import { backoffMs } from "./backoff.ts"

it("waits longer each time, 6 minutes 15 at most, whatever the jitter", () =>
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 2_000 }),
      fc.double({ min: 0, max: 0.999999, noNaN: true }),
      fc.double({ min: 0, max: 0.999999, noNaN: true }),
      (attempts, one, two) => {
        const waitMs = backoffMs(attempts, () => one)
        const nextMs = backoffMs(attempts + 1, () => two)
        expect(waitMs).toBeGreaterThanOrEqual(1_000)
        expect(waitMs).toBeLessThanOrEqual(375_000)
        if (attempts <= 8) expect(nextMs).toBeGreaterThan(waitMs)
      },
    ),
  ))
