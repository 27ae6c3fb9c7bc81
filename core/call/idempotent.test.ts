import { Deferred, Effect, Fiber, Stream } from "effect"
import { describe, expect, it, vi } from "vitest"
import { apiError, PortError } from "../errors.ts"
import { type Answering, streaming, useCallFixture, whole } from "./testing/fixture.ts"

const calls = useCallFixture()
const { endpoint } = calls

describe("with an Idempotency-Key", () => {
  const keyed = { idempotencyKey: "k1" }

  it("a second call gets the first reply and costs nothing", async () => {
    const first = await calls.fixture.ask(endpoint(whole(10)), { n: 1 }, keyed)
    const second = await calls.fixture.ask(endpoint(whole(10)), { n: 1 }, keyed)
    expect(second).toMatchObject({
      status: 200,
      json: first.json,
      costMicros: 0n,
      headers: { "idempotent-replayed": "true", "x-ratelimit-remaining-requests": "59" },
    })
    expect(second.headers["x-call-id"]).toBe(first.headers["x-call-id"])
    expect(calls.fixture.billing.calls).toHaveLength(1)
  })

  it("a session's second call gets the first reply too; billing is not asked", async () => {
    const caller = {
      tenant: calls.fixture.caller.tenant,
      scopes: [],
      role: "user",
      limits: calls.fixture.caller.limits,
    } as const
    const ask = (n: number) =>
      calls.fixture.ask(endpoint(whole(10), { access: "session" }), { n }, { ...keyed, caller })
    expect([await ask(1), await ask(1), await ask(2)]).toMatchObject([
      { status: 200 },
      { status: 200, headers: { "idempotent-replayed": "true" } },
      { status: 409 },
    ])
    expect(calls.steps.filter((step) => step === "ran")).toHaveLength(1)
    expect(calls.fixture.billing.calls).toEqual([])
  })

  it("another body is 409, as is a call while the first one runs", async () => {
    await calls.fixture.ask(endpoint(whole(10)), { n: 1 }, keyed)
    expect(await calls.fixture.ask(endpoint(whole(10)), { n: 2 }, keyed)).toMatchObject({
      status: 409,
      json: { code: "conflict", param: "Idempotency-Key" },
      headers: expect.not.objectContaining({ "retry-after": expect.anything() }),
    })
    const inside: Answering = (call) =>
      Effect.flatMap(
        Effect.promise(() =>
          calls.fixture.ask(endpoint(whole(1)), { n: 1 }, { idempotencyKey: "k2" }),
        ),
        ({ status, headers }) =>
          Effect.as(whole(1)(call), {
            status: 200,
            json: [status, headers["retry-after"] ?? null],
          }),
      )
    // the lease of a key is 15 s
    expect(
      await calls.fixture.ask(endpoint(inside), { n: 1 }, { idempotencyKey: "k2" }),
    ).toMatchObject({
      json: [409, "15"],
    })
  })

  it("a client that leaves while its call is settled pays once: its retry gets the reply", async () => {
    const door = Deferred.makeUnsafe<void>()
    const settles = vi.mocked(calls.fixture.billing.settle)
    const settle = settles.getMockImplementation()!
    settles.mockImplementation((items) => Effect.andThen(Deferred.await(door), settle(items)))
    const asked = calls.fixture.path.run(endpoint(whole(10)), calls.fixture.input({ n: 1 }, keyed))
    const fiber = Effect.runFork(Effect.scoped(asked))
    await vi.waitFor(() => expect(settles).toHaveBeenCalled())
    fiber.interruptUnsafe()
    Deferred.doneUnsafe(door, Effect.void)
    await Effect.runPromise(Fiber.await(fiber))
    expect(await calls.fixture.ask(endpoint(whole(10)), { n: 1 }, keyed)).toMatchObject({
      status: 200,
      headers: { "idempotent-replayed": "true" },
    })
    expect(calls.fixture.billing.calls.map(({ state }) => state)).toEqual(["settled"])
  })

  it("a failed call may be tried again, as may a cut one", async () => {
    expect(
      await calls.fixture.ask(
        endpoint(() => Effect.fail(apiError("backend_error"))),
        { n: 1 },
        keyed,
      ),
    ).toMatchObject({ status: 500 })
    await Effect.runPromiseExit(
      Effect.scoped(
        calls.fixture.path.run(
          endpoint(() => Effect.interrupt),
          calls.fixture.input({ n: 1 }, keyed),
        ),
      ),
    )
    expect(await calls.fixture.ask(endpoint(whole(10)), { n: 1 }, keyed)).toMatchObject({
      status: 200,
      headers: expect.not.objectContaining({ "idempotent-replayed": "true" }),
    })
  })

  it.each([
    ["fails", Effect.fail(new PortError({ port: "idempotency", message: "down" }))],
    ["throws", Effect.die(new Error("bug"))],
  ])("a reply is given all the same when its store %s: it is paid for", async (_, end) => {
    vi.spyOn(calls.fixture.idempotency, "finish").mockImplementation(() => end)
    expect(await calls.fixture.ask(endpoint(whole(10)), { n: 1 }, keyed)).toMatchObject({
      status: 200,
      json: { n: 1 },
    })
    expect(calls.last()?.state).toBe("settled")
  })

  it("a stream holds its key while it runs", async () => {
    let during: number | undefined
    const asking = Stream.drain(
      Stream.fromEffect(
        Effect.promise(async () => {
          during = (await calls.fixture.ask(endpoint(whole(1)), { n: 1 }, keyed)).status
        }),
      ),
    )
    await calls.fixture.ask(endpoint(streaming(2, asking)), { n: 1 }, keyed)
    expect(during).toBe(409)
    expect((await calls.fixture.ask(endpoint(whole(1)), { n: 1 }, keyed)).status).toBe(200)
  })

  it("a stream is not remembered, and a wrong key is 400", async () => {
    expect((await calls.fixture.ask(endpoint(streaming(2)), { n: 1 }, keyed)).events).toEqual([
      1, 2,
    ])
    expect((await calls.fixture.ask(endpoint(streaming(2)), { n: 1 }, keyed)).events).toEqual([
      1, 2,
    ])
    for (const idempotencyKey of ["", "two words", "x".repeat(256)])
      expect(
        await calls.fixture.ask(endpoint(whole(1)), { n: 1 }, { idempotencyKey }),
      ).toMatchObject({
        status: 400,
      })
  })

  it("endpoints that create nothing ignore it", async () => {
    const reading = endpoint(whole(10))
    const { creates: _, ...rest } = reading
    await calls.fixture.ask(rest, { n: 1 }, keyed)
    expect((await calls.fixture.ask(rest, { n: 2 }, keyed)).status).toBe(200)
  })
})
