import { Cause, Effect, Exit, Option } from "effect"
import { describe, expect, it } from "vitest"
import { apiError, PortError } from "../errors.ts"
import {
  type Answering,
  holdMicros,
  inputMicros,
  startMicros,
  streaming,
  useCallFixture,
  whole,
} from "./testing/fixture.ts"

const calls = useCallFixture()
const { endpoint, balance, last } = calls

describe("unsettled, for a batch line", () => {
  const line = (answer: Answering, body: unknown = { n: 1 }) =>
    Effect.runPromiseExit(
      calls.fixture.path.runUnsettled(
        endpoint(answer),
        calls.fixture.input(body, { priority: "batch", priceFactor: 0.5, parent: "batch_1" }),
      ),
    )

  it("leaves the settlement to the caller", async () => {
    const exit = await line(whole(10))
    expect(Exit.isSuccess(exit) && exit.value).toMatchObject({
      reply: { json: { n: 1 } },
      settlement: { outcome: "settled", costMicros: (inputMicros + 60_000n) / 2n, httpStatus: 200 },
    })
    expect(last()).toMatchObject({
      state: "open",
      holdMicros: holdMicros / 2n,
      request: { counts: "money", parent: "batch_1" },
    })
  })

  it.each<[string, Answering, string]>([
    ["an error", () => Effect.fail(apiError("backend_error")), "backend_error"],
    ["a defect", () => Effect.die(new Error("x")), "internal_error"],
    [
      "a failed port",
      () => Effect.fail(new PortError({ port: "storage", message: "gone" })),
      "internal_error",
    ],
    ["a stream", streaming(1), "unsupported_parameter"],
  ])("holds nothing after %s", async (_, answer, code) => {
    const exit = await line(answer)
    expect(
      Exit.isFailure(exit) && Option.getOrUndefined(Cause.findErrorOption(exit.cause)),
    ).toMatchObject({ code })
    expect(last()).toMatchObject({ state: "voided" })
    expect(await balance()).toEqual({ balanceMicros: startMicros, heldMicros: 0n })
  })

  it("holds nothing after an interruption", async () => {
    await line(() => Effect.interrupt)
    expect(last()).toMatchObject({ state: "voided" })
  })
})

describe("a check", () => {
  it("says the worst case at the caller's price, and admits and runs nothing", async () => {
    const found = await Effect.runPromise(
      calls.fixture.path.check(
        endpoint(whole(10)),
        calls.fixture.input({ n: 1 }, { priceFactor: 0.5 }),
      ),
    )
    expect(found.costMicros).toBe(holdMicros / 2n)
    expect(calls.steps).toEqual(["plan"])
  })

  it("fails as the call would", async () => {
    expect(
      await Effect.runPromise(
        Effect.flip(calls.fixture.path.check(endpoint(whole(10)), calls.fixture.input({ n: "x" }))),
      ),
    ).toMatchObject({ param: "n" })
    expect(calls.steps).toEqual([])
  })
})
