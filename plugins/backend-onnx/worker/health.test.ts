import { Effect, Exit, Scope } from "effect"
import { expect, test } from "vitest"
import { type ApiError, apiError } from "../../../core/errors.ts"
import { makeEngineHealth } from "./health.ts"

test("a restarting or lost engine is trouble until its model is closed, a busy one is none", async () => {
  const health = makeEngineHealth()
  let state: Effect.Effect<void, ApiError> = Effect.void
  const scope = Scope.makeUnsafe()
  await Effect.runPromise(
    health
      .watch("/models/a.gguf", { available: Effect.suspend(() => state) })
      .pipe(Scope.provide(scope)),
  )
  const trouble = () =>
    Effect.runPromise(
      Effect.match(health.check.check, { onSuccess: () => "", onFailure: (reason) => reason }),
    )
  expect(await trouble()).toBe("")
  state = Effect.fail(apiError("backend_busy"))
  expect(await trouble()).toBe("")
  state = Effect.fail(apiError("model_loading", "The engine is being restarted."))
  expect(await trouble()).toBe("a.gguf: The engine is being restarted.")
  await Effect.runPromise(Scope.close(scope, Exit.void))
  expect(await trouble()).toBe("")
})
