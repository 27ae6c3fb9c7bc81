import { Effect, Fiber } from "effect"
import { describe, expect, it, vi } from "vitest"
import { apiError, PortError } from "../errors.ts"
import {
  type Answering,
  holdMicros,
  inputMicros,
  startMicros,
  useCallFixture,
  whole,
} from "./testing/fixture.ts"

const calls = useCallFixture()
const { endpoint, balance, last } = calls

describe("a call that fails", () => {
  it("costs nothing, counts, and holds nothing", async () => {
    const failing: Answering = (call) =>
      Effect.flatMap(whole(10)(call), () => Effect.fail(apiError("backend_error")))
    const answer = await calls.fixture.ask(endpoint(failing), { n: 1 })
    expect(answer).toMatchObject({
      status: 500,
      json: { code: "backend_error" },
      headers: { "x-call-id": expect.any(String), "x-ratelimit-remaining-requests": "59" },
    })
    expect(last()).toMatchObject({
      state: "voided",
      costMicros: 0n,
      settlement: {
        httpStatus: 500,
        failure: { code: "backend_error", message: "The model failed; retry once." },
        timing: expect.stringMatching(/^plan;dur=.*, hold;dur=.*, total;dur=/),
      },
    })
    expect(await balance()).toEqual({ balanceMicros: startMicros, heldMicros: 0n })
  })

  it("because the backend is busy is given back whole", async () => {
    const busy: Answering = () => Effect.fail(apiError("backend_busy"))
    expect(await calls.fixture.ask(endpoint(busy), { n: 1 })).toMatchObject({ status: 429 })
    expect(last()).toMatchObject({
      state: "refused",
      settlement: { failure: { code: "backend_busy" } },
    })
    expect(await calls.fixture.ask(endpoint(whole(1)), { n: 1 })).toMatchObject({
      headers: { "x-ratelimit-remaining-requests": "59" },
    })
  })

  it("by a defect says internal_error and tells the log", async () => {
    const broken: Answering = () => Effect.die(new Error("secret detail"))
    expect(await calls.fixture.ask(endpoint(broken), { n: 1 })).toMatchObject({
      status: 500,
      json: { code: "internal_error", message: expect.not.stringContaining("secret") },
    })
    expect(last()).toMatchObject({
      state: "voided",
      settlement: { failure: { message: expect.not.stringContaining("secret") } },
    })
    expect(calls.fixture.log.lines).toMatchObject([
      {
        level: "error",
        event: "plugin.threw",
        fields: { cause: expect.stringContaining("secret detail") },
      },
    ])
  })

  it("by a meter that can't be priced holds nothing", async () => {
    const odd: Answering = whole(Number.NaN)
    expect(await calls.fixture.ask(endpoint(odd), { n: 1 })).toMatchObject({
      status: 500,
      json: { code: "internal_error" },
    })
    expect(last()).toMatchObject({ state: "voided", costMicros: 0n })
    expect(await balance()).toEqual({ balanceMicros: startMicros, heldMicros: 0n })
  })

  it("while planning holds nothing", async () => {
    const thrown = endpoint(whole(1), { plan: () => Effect.die(new Error("x")) })
    const refused = endpoint(whole(1), {
      plan: () => Effect.fail(apiError("context_length_exceeded")),
    })
    expect([
      (await calls.fixture.ask(thrown, { n: 1 })).status,
      (await calls.fixture.ask(refused, { n: 1 })).status,
    ]).toEqual([500, 400])
    expect(calls.fixture.billing.calls).toHaveLength(0)
  })

  it("because billing is down says internal_error", async () => {
    vi.mocked(calls.fixture.billing.admit).mockReturnValue(
      Effect.fail(new PortError({ port: "billing", message: "no connection" })),
    )
    expect(await calls.fixture.ask(endpoint(whole(1)), { n: 1 })).toMatchObject({
      status: 500,
      json: { code: "internal_error" },
    })
    expect(calls.steps).toEqual(["plan"])
  })

  it("because a port's queue is full says server_busy", async () => {
    vi.mocked(calls.fixture.billing.admit).mockReturnValue(
      Effect.fail(new PortError({ port: "billing", message: "too busy", why: "busy" })),
    )
    expect(await calls.fixture.ask(endpoint(whole(1)), { n: 1 })).toMatchObject({
      status: 503,
      json: { code: "server_busy" },
    })
    expect(calls.fixture.log.lines).toEqual([])
  })
})

it("a whole call that is cut pays what was metered", async () => {
  const hanging: Answering = (call) => Effect.flatMap(whole(7)(call), () => Effect.never)
  const program = Effect.gen(function* () {
    const fiber = yield* Effect.forkChild(
      Effect.scoped(calls.fixture.path.run(endpoint(hanging), calls.fixture.input({ n: 1 }))),
      { startImmediately: true },
    )
    while (calls.fixture.billing.calls.length === 0) yield* Effect.yieldNow
    expect(yield* calls.fixture.billing.balance("acct_1")).toMatchObject({ heldMicros: holdMicros })
    yield* Fiber.interrupt(fiber)
  })
  await Effect.runPromise(program)
  expect(last()).toMatchObject({
    state: "settled",
    costMicros: inputMicros + 42_000n,
    settlement: { httpStatus: 499, timing: expect.stringContaining("first_token;dur=") },
  })
})
