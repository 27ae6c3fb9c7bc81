import { randomUUID } from "node:crypto"
import { Effect } from "effect"
import fc from "fast-check"
import { sql } from "kysely"
import { afterAll, beforeAll, expect, it } from "vitest"
import {
  costOf,
  type PriceTag,
  parsePrice,
  priceTag,
  type Settlement,
  usageOf,
  uuidV7,
} from "../../../core/index.ts"
import { openTestDatabase, type TestDatabase } from "../../../testing/postgres.ts"
import { openProofFixture, type ProofFixture } from "../testing/proof-fixture.ts"

const run = Effect.runPromise

let test: TestDatabase
let ledger: ProofFixture
beforeAll(async () => {
  test = await openTestDatabase()
  ledger = await openProofFixture(test)
  await ledger.fill()
})
afterAll(() => test.close())

it("prices usage as core/pricing.ts does, to the last micro-rupiah", async () => {
  await run(
    ledger.billing().adjust({
      id: randomUUID(),
      account: "acct_1",
      amountMicros: 10n ** 18n,
      reason: "test",
    }),
  )
  const count = fc.oneof(fc.nat(10), fc.nat(10_000_000))
  const part = fc.record({
    inputTokens: count,
    outputTokens: count,
    images: fc.nat(5),
    audioSeconds: fc.nat(900),
    searchUnits: fc.nat(3),
  })
  const used = part.chain((some) =>
    fc
      .record({ cacheReadTokens: fc.nat(some.inputTokens) })
      .map((read) => usageOf({ ...some, ...read })),
  )
  const amount = fc.nat(10 ** 12).map((micros) => micros / 1e6)
  const price = fc
    .record({
      input: amount,
      output: amount,
      cacheWrite: amount,
      image: amount,
      audioSecond: amount,
      searchUnit: amount,
    })
    .map(parsePrice)
  const call = fc.record({
    usage: fc.record({ m: used, n: used }),
    prices: fc.record({ m: price, n: price }),
    factor: fc.constantFrom(1, 0.5, 0.333),
  })
  await fc.assert(
    fc.asyncProperty(
      fc.array(call, { minLength: 10, maxLength: 30 }),
      fc.bigInt({ min: 1n, max: 10n ** 16n }),
      async (calls, hold) => {
        const items = calls.map(
          ({ usage, prices: own, factor }): Settlement & { readonly tag: PriceTag } => {
            const of = (model: string) => own[model as "m" | "n"]
            const costMicros = costOf(of, usage, factor)
            return {
              id: uuidV7(ledger.nowMs()),
              outcome: "settled",
              costMicros,
              usage,
              httpStatus: 200,
              tag: priceTag(of, ["m", "n"], factor),
            }
          },
        )
        for (const { id, tag } of items)
          await ledger.admit({ hold, more: { id, prices: tag, counts: "money" } })
        await run(ledger.billing().settle(items))
        expect((await ledger.verify()).faults).toEqual([])
        await ledger.query(sql`UPDATE ledger_call SET prices = NULL`)
      },
    ),
    { numRuns: 10 },
  )
})
