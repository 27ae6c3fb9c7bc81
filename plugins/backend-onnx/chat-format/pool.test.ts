import { Effect, Layer, Scope } from "effect"
import { TestClock } from "effect/testing"
import { expect, test } from "vitest"
import { PortError } from "../../../core/errors.ts"
import { fakeLog } from "../../../testing/index.ts"
import { inPool } from "./pool.ts"

const failing = (error: PortError, isLimited = false) => {
  const log = fakeLog()
  return Effect.runPromise(
    Effect.flip(
      inPool({ run: () => Effect.fail(error) }, log, "chat-prompt-job", {}, { isLimited }),
    ),
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

test("a limited task that takes long, in its thread or waiting for one, is server_busy", async () => {
  for (const why of ["slow", "busy"] as const) {
    const error = new PortError({ port: "workers", message: why, why })
    expect((await failing(error, true)).failure).toMatchObject({ code: "server_busy" })
  }
  const clock = await Effect.runPromise(
    Layer.build(TestClock.layer()).pipe(Scope.provide(Scope.makeUnsafe())),
  )
  const run = Effect.runPromiseWith(clock)
  const noThread = { run: () => Effect.never }
  const waiting = run(
    Effect.flip(inPool(noThread, fakeLog(), "chat-prompt-job", {}, { isLimited: true })),
  )
  await run(TestClock.adjust("41 seconds"))
  expect(await waiting).toMatchObject({ code: "server_busy" })
})
