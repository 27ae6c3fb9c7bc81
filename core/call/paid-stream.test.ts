import { Deferred, Effect, Exit, Fiber, Stream } from "effect"
import { beforeEach, describe, expect, it, vi } from "vitest"
import type { CallPathFixture } from "../../testing/index.ts"
import { type ApiError, apiError, PortError } from "../errors.ts"
import {
  type CallFixture,
  inputMicros,
  openCallFixture,
  startMicros,
  streaming,
} from "./testing/fixture.ts"

let calls: CallFixture
let fixture: CallPathFixture
const endpoint: CallFixture["endpoint"] = (answer, more) => calls.endpoint(answer, more)
const balance = () => calls.balance()
const last = () => calls.last()

beforeEach(() => {
  calls = openCallFixture()
  fixture = calls.fixture
})

describe("a stream", () => {
  it("is settled before its end", async () => {
    const seen: string[] = []
    await Effect.runPromise(
      Effect.scoped(
        Effect.gen(function* () {
          const { reply, cost } = yield* fixture.path.run(
            endpoint(streaming(3)),
            fixture.input({ n: 1 }),
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
            const { reply } = yield* fixture.path.run(hanging, fixture.input({ n: 1 }))
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
          const { reply } = yield* fixture.path.run(
            endpoint(streaming(100)),
            fixture.input({ n: 1 }),
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
      Effect.scoped(fixture.path.run(endpoint(streaming(3)), fixture.input({ n: 1 }))),
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
          fixture.path.run(endpoint(streaming(3, rest)), fixture.input({ n: 1 })),
          ({ reply }) => ("events" in reply ? Stream.runDrain(reply.events) : Effect.void),
        ),
      ),
    )
    expect(Exit.isFailure(exit)).toBe(true)
    expect(last()).toMatchObject({ state, costMicros: 0n, settlement: { httpStatus } })
    expect(await balance()).toEqual({ balanceMicros: startMicros, heldMicros: 0n })
  })

  it("whose settlement fails ends with internal_error", async () => {
    vi.mocked(fixture.billing.settle).mockReturnValue(
      Effect.fail(new PortError({ port: "billing", message: "gone" })),
    )
    expect(await fixture.ask(endpoint(streaming(1)), { n: 1 })).toMatchObject({
      status: 500,
      json: { code: "internal_error" },
    })
  })
})
