import { Effect } from "effect"
import fc from "fast-check"
import { afterAll, beforeAll, expect, it } from "vitest"
import type { Receiver } from "../../../testing/receiver.ts"
import { type ApiFixture, openApiFixture } from "../testing/api-fixture.ts"

/** A model of one delivery's retries, in ms since it was stored. The jitter is known. */
const waitsMs = [5_000, 30_000, 300_000, 1_800_000]
const makeModel = (random: number) => {
  let state: "pending" | "succeeded" | "giveup" = "pending"
  let tries = 0
  let roundMs = 0
  let dueMs: number | undefined = 0
  const codes: number[] = []
  return {
    get seen() {
      return { state, codes: codes.slice(-20) }
    },
    /** The attempts up to then; time jumps, so a late attempt is made at the end of the jump. */
    advance: (nowMs: number, code: number) => {
      while (state === "pending" && dueMs !== undefined && dueMs <= nowMs) {
        if (tries > 0 && nowMs - roundMs >= 7_200_000) {
          state = "giveup"
          return
        }
        codes.push(code)
        const waitMs = waitsMs[tries++]
        if (code < 300) state = "succeeded"
        else if (waitMs === undefined || nowMs - roundMs >= 7_200_000) state = "giveup"
        else dueMs = nowMs + Math.round(waitMs * (1 + random / 5))
      }
    },
    redeliver: (nowMs: number) => {
      ;[state, tries, roundMs, dueMs] = ["pending", 0, nowMs, nowMs]
    },
    remove: () => {
      if (state === "pending") state = "giveup"
    },
  }
}

type Move =
  | { readonly do: "advance"; readonly ms: number }
  | { readonly do: "answer"; readonly code: number }
  | { readonly do: "redeliver" }
  | { readonly do: "rotate" }
const move: fc.Arbitrary<Move> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant("advance" as const),
      ms: fc.oneof(
        fc.constantFrom(0, 4_999, 5_000, 6_000, 36_000, 360_000, 2_160_000, 7_200_000),
        fc.nat(8_000_000),
      ),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant("answer" as const),
      code: fc.constantFrom(200, 204, 299, 302, 404, 500, 503),
    }),
  },
  { weight: 1, arbitrary: fc.constant({ do: "redeliver" as const }) },
  { weight: 1, arbitrary: fc.constant({ do: "rotate" as const }) },
)

let api: ApiFixture
let receiver: Receiver
beforeAll(async () => {
  api = await openApiFixture()
  receiver = await api.receive()
})
afterAll(() => api?.close())

it("a delivery goes the contract's way, over any schedule of answers, waits and redeliveries", async () => {
  let code = 500
  receiver.answer = (reply) => {
    reply.statusCode = code
    reply.end()
  }
  const play = async (moves: readonly Move[], dice: number) => {
    code = 500
    api.dice(dice)
    await api.empty()
    await Effect.runPromise(api.drain)
    const { id } = await api.register(receiver.url)
    const startMs = api.clock.nowMs()
    const nowMs = () => api.clock.nowMs() - startMs
    const model = makeModel(dice)
    await api.emit()
    await api.advance(0)
    model.advance(0, code)
    const [{ id: delivery }] = await api.deliveries(id)
    for (const one of moves) {
      if (one.do === "answer") code = one.code
      else if (one.do === "rotate") await api.ask(`POST /v1/webhooks/${id}/rotate`)
      else {
        if (one.do === "redeliver") {
          await api.ask(`POST /v1/webhooks/${id}/deliveries/${delivery}/redeliver`)
          model.redeliver(nowMs())
        }
        await api.advance(one.do === "advance" ? one.ms : 0)
        model.advance(nowMs(), code)
      }
      const [row] = await api.deliveries(id)
      expect({
        state: row.status,
        codes: row.attempts.map((attempt: { status_code: number }) => attempt.status_code),
      }).toEqual(model.seen)
      expect(row.next_attempt_at === null).toBe(row.status !== "pending")
    }
  }
  await fc.assert(
    fc.asyncProperty(
      fc.array(move, { maxLength: 12 }),
      fc.double({ min: 0, max: 0.999, noNaN: true }),
      play,
    ),
    { numRuns: 60 },
  )
}, 240_000)
