import { Deferred, Effect, Exit, Fiber, Stream } from "effect"
import { describe, expect, it, vi } from "vitest"
import { type ApiError, apiError, PortError } from "../errors.ts"
import { inputMicros, startMicros, streaming, useCallFixture } from "./testing/fixture.ts"

const calls = useCallFixture()
const { endpoint, balance, last } = calls

describe("a stream", () => {
  it("is settled before its end", async () => {
    const seen: string[] = []
    await Effect.runPromise(
      Effect.scoped(
        Effect.gen(function* () {
          const { reply, cost } = yield* calls.fixture.path.run(
            endpoint(streaming(3)),
            calls.fixture.input({ n: 1 }),
          )
          if (!("events" in reply)) throw new Error("no stream")
          expect(reply.headers).not.toHaveProperty("x-cost-idr")
          yield* Stream.runForEach(reply.events, (event) =>
            Effect.sync(() => seen.push(`${event} ${last()?.state}`)),
          )
          // the Scope is still open
          expect([last()?.state, cost()]).toEqual(["settled", inputMicros + 18_000n])
        }),
      ),
    )
    expect(seen).toEqual(["1 open", "2 open", "3 open"])
    expect(calls.steps.filter((step) => step.startsWith("settle"))).toHaveLength(1)
  })

  it("that is cut pays exactly what was metered", async () => {
    const hanging = endpoint(streaming(5, Stream.never))
    const program = Effect.gen(function* () {
      const reached = yield* Deferred.make<void>()
      const fiber = yield* Effect.forkChild(
        Effect.scoped(
          Effect.gen(function* () {
            const { reply } = yield* calls.fixture.path.run(hanging, calls.fixture.input({ n: 1 }))
            if ("events" in reply)
              yield* Stream.runForEach(reply.events, (event) =>
                event === 5 ? Deferred.succeed(reached, undefined) : Effect.void,
              )
          }),
        ),
      )
      yield* Deferred.await(reached)
      yield* Fiber.interrupt(fiber)
    })
    await Effect.runPromise(program)
    expect(last()).toMatchObject({
      state: "settled",
      costMicros: inputMicros + 30_000n,
      settlement: { httpStatus: 499 },
    })
    expect(await balance()).toMatchObject({ heldMicros: 0n })
  })

  it("of which the reader wants no more pays what was metered", async () => {
    await Effect.runPromise(
      Effect.scoped(
        Effect.gen(function* () {
          const { reply } = yield* calls.fixture.path.run(
            endpoint(streaming(100)),
            calls.fixture.input({ n: 1 }),
          )
          if ("events" in reply) yield* Stream.runDrain(Stream.take(reply.events, 2))
        }),
      ),
    )
    expect(last()).toMatchObject({
      state: "settled",
      costMicros: inputMicros + 12_000n,
      settlement: { httpStatus: 499 },
    })
  })

  it("that nobody reads costs nothing", async () => {
    await Effect.runPromise(
      Effect.scoped(calls.fixture.path.run(endpoint(streaming(3)), calls.fixture.input({ n: 1 }))),
    )
    expect(last()).toMatchObject({ state: "settled", costMicros: 0n })
  })

  it.each<[string, Stream.Stream<never, ApiError>, string, number]>([
    ["an error", Stream.fail(apiError("backend_timeout")), "voided", 504],
    ["a defect", Stream.die(new Error("x")), "voided", 500],
    ["a busy backend", Stream.fail(apiError("backend_busy")), "refused", 429],
  ])("that ends with %s costs nothing", async (_, rest, state, httpStatus) => {
    const exit = await Effect.runPromiseExit(
      Effect.scoped(
        Effect.flatMap(
          calls.fixture.path.run(endpoint(streaming(3, rest)), calls.fixture.input({ n: 1 })),
          ({ reply }) => ("events" in reply ? Stream.runDrain(reply.events) : Effect.void),
        ),
      ),
    )
    expect(Exit.isFailure(exit)).toBe(true)
    expect(last()).toMatchObject({ state, costMicros: 0n, settlement: { httpStatus } })
    expect(await balance()).toEqual({ balanceMicros: startMicros, heldMicros: 0n })
  })

  it("whose settlement fails ends with internal_error", async () => {
    vi.mocked(calls.fixture.billing.settle).mockReturnValue(
      Effect.fail(new PortError({ port: "billing", message: "gone" })),
    )
    expect(await calls.fixture.ask(endpoint(streaming(1)), { n: 1 })).toMatchObject({
      status: 500,
      json: { code: "internal_error" },
    })
  })
})
