import { Effect } from "effect"
import { expect, test } from "vitest"
import { PortError } from "../../../core/errors.ts"
import { fakeLog } from "../../../testing/index.ts"
import { inPool } from "./pool.ts"

const failing = (error: PortError) => {
  const log = fakeLog()
  return Effect.runPromise(
    Effect.flip(inPool({ run: () => Effect.fail(error) }, log, "chat-prompt-job", {})),
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
