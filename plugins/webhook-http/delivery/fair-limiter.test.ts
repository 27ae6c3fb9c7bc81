import { Deferred, Effect, Fiber, Option } from "effect"
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { makeFairLimiter } from "./fair-limiter.ts"

const run = Effect.runPromise
const held = (
  limiter: ReturnType<typeof makeFairLimiter>,
  webhook: string,
  until: Deferred.Deferred<void>,
) => Effect.forkChild(limiter(webhook, Deferred.await(until)), { startImmediately: true })

describe("the fair limiter", () => {
  it("runs a few at once for a webhook, lets some wait, and turns the rest away", () =>
    run(
      Effect.gen(function* () {
        const limiter = makeFairLimiter({ perWebhook: 2, atOnce: 1_000 })
        const until = Deferred.makeUnsafe<void>()
        let running = 0
        const work = Effect.andThen(
          Effect.sync(() => running++),
          Deferred.await(until),
        )
        const fibers = []
        for (let n = 0; n < 102; n++)
          fibers.push(yield* Effect.forkChild(limiter("slow", work), { startImmediately: true }))
        expect(running).toBe(2)
        expect(yield* limiter("slow", Effect.void)).toEqual(Option.none())
        expect(yield* limiter("other", Effect.succeed(7))).toEqual(Option.some(7))
        yield* Deferred.succeed(until, undefined)
        for (const fiber of fibers) expect(Option.isSome(yield* Fiber.join(fiber))).toBe(true)
        expect(yield* limiter("slow", Effect.succeed(8))).toEqual(Option.some(8))
      }),
    ))

  it("lets nobody wait once half of all permits are taken, so that new webhooks still get one", () =>
    run(
      Effect.gen(function* () {
        const limiter = makeFairLimiter({ perWebhook: 4, atOnce: 500 })
        const until = Deferred.makeUnsafe<void>()
        for (let webhook = 0; webhook < 40; webhook++)
          for (let n = 0; n < 200; n++) yield* held(limiter, `slow ${webhook}`, until)
        expect(yield* limiter("new", Effect.succeed("in"))).toEqual(Option.some("in"))
        expect(yield* limiter("slow 39", Effect.void)).toEqual(Option.none())
        yield* Deferred.succeed(until, undefined)
      }),
    ))

  it("releases the permit however the work ends", () =>
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
              const limiter = makeFairLimiter({ perWebhook: 1, atOnce: 4 })
              for (const { webhook, end } of visits) {
                if (end === "interrupt")
                  yield* Fiber.interrupt(yield* held(limiter, webhook, Deferred.makeUnsafe<void>()))
                else
                  yield* Effect.exit(
                    limiter(
                      webhook,
                      end === "succeed"
                        ? Effect.void
                        : end === "fail"
                          ? Effect.fail("no")
                          : Effect.die("bug"),
                    ),
                  )
              }
              // both at once need permits that nobody still holds
              const until = Deferred.makeUnsafe<void>()
              yield* held(limiter, "a", until)
              expect(yield* limiter("b", Effect.succeed(1))).toEqual(Option.some(1))
              yield* Deferred.succeed(until, undefined)
            }),
          ),
      ),
      { numRuns: 50 },
    ))
})
