import { randomUUID } from "node:crypto"
import fc from "fast-check"
import { expect, it } from "vitest"
import { lesser } from "../../core/index.ts"
import { account, clock, grant, run, useAccountFixture } from "./testing/account-fixture.ts"
import { settlementOf } from "./testing/plain-ledger.ts"
import { faults, limited, reasonOf, rows, spareLedger } from "./testing/spares-fixture.ts"

useAccountFixture()

const stepArbitrary = fc.record({
  calls: fc.integer({ min: 1, max: 8 }),
  holdMicros: fc.constantFrom(0n, 3n, 4n, 20n),
  costMicros: fc.constantFrom(0n, 2n, 30n),
  outcome: fc.constantFrom("settled", "settled", "voided", "refused"),
  waitMs: fc.constantFrom(0, 0, 10, 100, 300, 20_000),
} as const)

it("two servers with spare calls keep to every limit, and the ledger adds up", async () => {
  let used = 0
  let refused = 0
  const limits = { rpm: 40, rpd: 90, concurrency: 8, monthlyCapMicros: 100n }
  const schedule = async (
    steps: readonly (typeof stepArbitrary extends fc.Arbitrary<infer S> ? S : never)[],
  ) => {
    const key = randomUUID()
    const servers = [spareLedger(), spareLedger()]
    await run(grant(150n))
    const before = (await run(servers[0]!.balance(account))).balanceMicros
    const begun: number[] = []
    let charged = 0n
    /** Both servers get `step.calls` at once; they settle when all are admitted or refused. */
    const runStep = async (step: (typeof steps)[number]) => {
      const began = servers.flatMap((server) =>
        Array.from({ length: step.calls }, async () => {
          const { caller, ...rest } = limited(step.holdMicros, limits)
          const request = { ...rest, caller: { ...caller, keyId: key } }
          const isAdmitted = (await reasonOf(request, server)) === "admitted"
          return isAdmitted ? [{ server, id: request.id }] : []
        }),
      )
      const open = (await Promise.all(began)).flat()
      expect(open.length).toBeLessThanOrEqual(8)
      refused += began.length - open.length
      used += (await rows("spare")).length
      if (step.outcome !== "refused") begun.push(...open.map(() => clock.nowMs()))
      if (step.outcome === "settled")
        charged += BigInt(open.length) * lesser(step.costMicros, step.holdMicros)
      for (const { server, id } of open)
        await run(server.settle([settlementOf(id, step.outcome, step.costMicros)]))
      clock.advance(step.waitMs)
    }
    for (const step of steps) await runStep(step)
    for (const server of servers) await run(server.idle)
    for (const from of begun)
      expect(begun.filter((at) => at >= from && at < from + 60_000).length).toBeLessThanOrEqual(40)
    expect(begun.length).toBeLessThanOrEqual(90)
    expect(charged <= 100n).toBe(true)
    const after = await run(servers[0]!.balance(account))
    expect({ charged, held: after.heldMicros }).toEqual({
      charged: before - after.balanceMicros,
      held: 0n,
    })
    expect(await rows("spare")).toEqual([])
    expect(await faults()).toEqual([])
    clock.advance(24 * 3_600_000)
  }
  await fc.assert(
    fc.asyncProperty(fc.array(stepArbitrary, { minLength: 5, maxLength: 25 }), schedule),
    { numRuns: 30 },
  )
  expect(Math.min(used, refused), "there were some").toBeGreaterThan(10)
}, 60_000)
