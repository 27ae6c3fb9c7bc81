import { Effect, Layer, Scope } from "effect"
import { TestClock } from "effect/testing"
import { expect, test } from "vitest"
import { type ApiError, apiError, PortError } from "../../../core/errors.ts"
import { fakeLog } from "../../../testing/index.ts"
import { inPool } from "./pool.ts"

const failing = (error: PortError, tooLong?: ApiError) => {
  const log = fakeLog()
  return Effect.runPromise(
    Effect.flip(inPool({ run: () => Effect.fail(error) }, log, "chat-prompt-job", {}, tooLong)),
  ).then((failure) => ({ failure, log }))
}

test("a full queue is server_busy, which the client may try again", async () => {
  const { failure, log } = await failing(
    new PortError({ port: "workers", message: "1024 tasks are waiting already", why: "busy" }),
  )
  expect(failure).toMatchObject({ _tag: "ApiError", code: "server_busy" })
  expect(log.lines).toEqual([])
})

test("what else goes wrong is ours, and in the log", async () => {
  const { failure, log } = await failing(new PortError({ port: "workers", message: "it threw" }))
  expect(failure).toMatchObject({ _tag: "ApiError", code: "backend_error" })
  expect(log.lines).toMatchObject([{ level: "error", fields: { reason: "it threw" } }])
})

test("a task that is slow by itself is what its caller says; one that finds no thread is server_busy", async () => {
  const tooLong = apiError("unsupported_parameter", "The schemas are too complex.")
  const slow = new PortError({ port: "workers", message: "slow", why: "slow" })
  expect((await failing(slow, tooLong)).failure).toBe(tooLong)
  const busy = new PortError({ port: "workers", message: "full", why: "busy" })
  expect((await failing(busy, tooLong)).failure).toMatchObject({ code: "server_busy" })
  const clock = await Effect.runPromise(
    Layer.build(TestClock.layer()).pipe(Scope.provide(Scope.makeUnsafe())),
  )
  const run = Effect.runPromiseWith(clock)
  const noThread = { run: () => Effect.never }
  const waiting = run(Effect.flip(inPool(noThread, fakeLog(), "chat-prompt-job", {}, tooLong)))
  await run(TestClock.adjust("41 seconds"))
  expect(await waiting).toMatchObject({ code: "server_busy" })
})
