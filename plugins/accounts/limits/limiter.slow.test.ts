import { Effect } from "effect"
import fc from "fast-check"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { openTestDatabase, type TestDatabase } from "../../../testing/postgres.ts"
import { sweepExpired } from "../sweeper.ts"
import { type Fixture, openFixture } from "../testing/fixture.ts"
import { type Limit, makeLimiter } from "./limiter.ts"
import { loginLimits, sourceOf } from "./limits.ts"

let test: TestDatabase
let fixture: Fixture
beforeAll(async () => {
  test = await openTestDatabase()
  fixture = await openFixture(test)
})
afterAll(() => fixture?.close())

const run = Effect.runPromise
let subjects = 0
const fresh = (max: number, windowMs = 1_000): Limit => ({
  kind: "test",
  subject: [`s${subjects++}`],
  max,
  windowMs,
})

describe("the limiter", () => {
  it("does as a list of all attempts would, whatever comes when, on either of two servers", async () => {
    const databases = [fixture.database, await test.openAgain()]
    const limiters = databases.map((database) => makeLimiter(database, fixture.clock))
    const step = fc.record({
      waitMs: fc.constantFrom(0, 0, 0, 1, 200, 499, 500, 999, 1_000),
      on: fc.nat(1),
      subject: fc.nat(1),
      how: fc.constantFrom("take", "takeIn", "peek"),
    })
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 10, maxLength: 40 }), async (steps) => {
        const subjects = [fresh(3), fresh(3, 500)]
        const all = fresh(4)
        const seen = new Map<Limit, number[]>()
        const waitOf = (limit: Limit) => {
          const recent = (seen.get(limit) ?? []).filter(
            (ms) => ms > fixture.clock.nowMs() - limit.windowMs,
          )
          return recent.length < limit.max
            ? 0
            : recent.at(-limit.max)! + limit.windowMs - fixture.clock.nowMs()
        }
        for (const { waitMs, on, subject, how } of steps) {
          fixture.clock.advance(waitMs)
          const limits = how === "takeIn" ? [all] : [subjects[subject]!, all]
          const waits = limits.map(waitOf)
          if (how === "peek") expect(await run(limiters[on]!.peek(limits))).toBe(Math.max(...waits))
          else {
            const taking =
              how === "take"
                ? limiters[on]!.take(limits)
                : databases[on]!.transaction((tx) => limiters[on]!.takeIn(all, tx))
            expect(await run(taking)).toBe(waits.find((ms) => ms > 0) ?? 0)
            if (waits.every((ms) => ms === 0))
              for (const limit of limits)
                seen.set(limit, [...(seen.get(limit) ?? []), fixture.clock.nowMs()])
          }
        }
      }),
      { numRuns: 40 },
    )
  })

  it("lets exactly so many through when all come at once, on two servers", async () => {
    const limiters = [
      makeLimiter(fixture.database, fixture.clock),
      makeLimiter(await test.openAgain(), fixture.clock),
    ]
    const [pair, all] = [fresh(7), fresh(10)]
    const others = Array.from({ length: 10 }, () => fresh(3))
    const takes = [
      ...Array.from({ length: 40 }, () => [pair, all]),
      ...others.map((one) => [one, all]),
    ]
    const waits = await Promise.all(takes.map((limits, i) => run(limiters[i % 2]!.take(limits))))
    expect(waits.filter((ms) => ms === 0)).toHaveLength(10)
    expect(waits.filter((ms, i) => ms === 0 && i < 40).length).toBeLessThanOrEqual(7)
    expect(new Set(waits)).toEqual(new Set([0, 1_000]))
  })

  it("stores no address and no e-mail", async () => {
    await run(
      makeLimiter(fixture.database, fixture.clock).take(
        loginLimits("ada@example.com", { address: "192.0.2.77" }),
      ),
    )
    const rows = await fixture.tables.selectFrom("accounts_attempt").selectAll().execute()
    expect(rows.map((row) => row.bucket.toString("latin1") + row.at_ms.join()).join()).not.toMatch(
      /ada|example|192\.0\.2/,
    )
  })

  it("leaves rows only while they count", async () => {
    const limiter = makeLimiter(fixture.database, fixture.clock)
    fixture.clock.advance(3_600_000)
    await run(sweepExpired(fixture.database, fixture.clock))
    const [short, long] = [fresh(1, 1_000), fresh(1, 2_000)]
    await run(limiter.take([short, long]))
    fixture.clock.advance(1_000)
    expect(await run(sweepExpired(fixture.database, fixture.clock))).toBe(1)
    expect(await run(limiter.peek([short]))).toBe(0)
    expect(await run(limiter.peek([long]))).toBe(1_000)
  })
})

it("a client is its IPv4 address, or its network of IPv6", () => {
  const of = (address: string) => sourceOf({ address })
  expect(of("::ffff:192.0.2.1")).toBe(of("192.0.2.1"))
  expect(of("192.0.2.2")).not.toBe(of("192.0.2.1"))
  expect(of("2001:db8:1:2::1")).toBe(of("2001:db8:1:2:ffff::9"))
  expect(of("2001:db8:1:3::1")).not.toBe(of("2001:db8:1:2::1"))
  expect(of("unknown")).toBe("unknown")
  expect(sourceOf(undefined)).toBe("")
})
