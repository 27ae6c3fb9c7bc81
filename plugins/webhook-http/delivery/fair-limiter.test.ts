import { Deferred, Effect, Fiber, Option } from "effect"
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { makeWebhookGate } from "./fair-limiter.ts"

const run = Effect.runPromise
const held = (
  gate: ReturnType<typeof makeWebhookGate>,
  webhook: string,
  until: Deferred.Deferred<void>,
) => Effect.forkChild(gate(webhook, Deferred.await(until)), { startImmediately: true })

describe("the gate", () => {
  it("lets a few in at once for a webhook, keeps a line, and sends the rest away", () =>
    run(
      Effect.gen(function* () {
        const gate = makeWebhookGate({ perWebhook: 2, atOnce: 1_000 })
        const until = Deferred.makeUnsafe<void>()
        let inside = 0
        const work = Effect.andThen(
          Effect.sync(() => inside++),
          Deferred.await(until),
        )
        const fibers = []
        for (let n = 0; n < 102; n++)
          fibers.push(yield* Effect.forkChild(gate("slow", work), { startImmediately: true }))
        expect(inside).toBe(2)
        expect(yield* gate("slow", Effect.void)).toEqual(Option.none())
        expect(yield* gate("other", Effect.succeed(7))).toEqual(Option.some(7))
        yield* Deferred.succeed(until, undefined)
        for (const fiber of fibers) expect(Option.isSome(yield* Fiber.join(fiber))).toBe(true)
        expect(yield* gate("slow", Effect.succeed(8))).toEqual(Option.some(8))
      }),
    ))

  it("keeps no line for anybody when the fixture is half full, so that new ones still get in", () =>
    run(
      Effect.gen(function* () {
        const gate = makeWebhookGate({ perWebhook: 4, atOnce: 500 })
        const until = Deferred.makeUnsafe<void>()
        for (let webhook = 0; webhook < 40; webhook++)
          for (let n = 0; n < 200; n++) yield* held(gate, `slow ${webhook}`, until)
        expect(yield* gate("new", Effect.succeed("in"))).toEqual(Option.some("in"))
        expect(yield* gate("slow 39", Effect.void)).toEqual(Option.none())
        yield* Deferred.succeed(until, undefined)
      }),
    ))

  it("forgets whoever leaves, however they leave", () =>
    fc.assert(
      fc.asyncProperty(
        fc.array(
          fc.record({
            webhook: fc.constantFrom("a", "b"),
            end: fc.constantFrom("succeed", "fail", "die", "interrupt"),
          }),
          { maxLength: 40 },
        ),
        (visits) =>
          run(
            Effect.gen(function* () {
              const gate = makeWebhookGate({ perWebhook: 1, atOnce: 4 })
              for (const { webhook, end } of visits) {
                if (end === "interrupt")
                  yield* Fiber.interrupt(yield* held(gate, webhook, Deferred.makeUnsafe<void>()))
                else
                  yield* Effect.exit(
                    gate(
                      webhook,
                      end === "succeed"
                        ? Effect.void
                        : end === "fail"
                          ? Effect.fail("no")
                          : Effect.die("bug"),
                    ),
                  )
              }
              // both at once need room that nobody still holds
              const until = Deferred.makeUnsafe<void>()
              yield* held(gate, "a", until)
              expect(yield* gate("b", Effect.succeed(1))).toEqual(Option.some(1))
              yield* Deferred.succeed(until, undefined)
            }),
          ),
      ),
      { numRuns: 50 },
    ))
})
