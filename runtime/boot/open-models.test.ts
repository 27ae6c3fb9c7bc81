import "reflect-metadata/lite"
import { Effect, Exit, Scope } from "effect"
import { container } from "tsyringe"
import { expect, it } from "vitest"
import { apiError } from "../../core/errors.ts"
import type { Backend, OpenRequest } from "../../core/ports/model.ts"
import { makeCatalogue } from "../../core/services/catalogue.ts"
import { provide, Tokens } from "../../core/tokens.ts"
import { fakeChatModel, fakeClock, fakeLog, fakeMetrics } from "../../testing/index.ts"
import { makeModelMetrics } from "../services/model-metrics.ts"
import type { AssembledDeployment } from "./assemble.ts"
import { openModels } from "./open-models.ts"

const listener = { report: () => {}, done: () => {} }

/** One model without files; what its backend opens is counted. */
const makeDeployment = (outcome: Effect.Effect<void, ReturnType<typeof apiError>>) => {
  const { entry, loaded } = fakeChatModel()
  const catalogue = makeCatalogue([{ ...entry, backend: "counting", sources: [] }])
  const seen = { open: 0, request: undefined as OpenRequest | undefined }
  const resource = Effect.acquireRelease(
    Effect.sync(() => void seen.open++),
    () => Effect.sync(() => void seen.open--),
  )
  const open = (request: OpenRequest) => {
    seen.request = request
    return resource.pipe(Effect.andThen(outcome), Effect.as(loaded))
  }
  const backend = {
    name: "counting",
    tasks: ["chat"],
    check: () => undefined,
    open,
  } as unknown as Backend
  const child = container.createChildContainer()
  provide(child, Tokens.catalogue, catalogue)
  provide(child, Tokens.log, fakeLog())
  return {
    fixture: {
      container: child,
      backends: [backend],
      modelMetrics: makeModelMetrics(fakeMetrics(), catalogue, fakeClock()),
    } as unknown as AssembledDeployment,
    catalogue,
    seen,
    id: entry.id,
  }
}

it("a model that is ready stays so when its backend opens anew what it had lost, and is closed at the end", async () => {
  const { fixture, catalogue, seen, id } = makeDeployment(Effect.void)
  const scope = Scope.makeUnsafe()
  expect(await Effect.runPromise(openModels(fixture, listener).pipe(Scope.provide(scope)))).toEqual(
    [],
  )
  seen.request!.progress("reading weights")
  expect(catalogue.state(id).state).toBe("ready")
  expect(seen.open).toBe(1)
  await Effect.runPromise(Scope.close(scope, Exit.void))
  expect(seen.open).toBe(0)
})

it("a model that can't be opened leaves nothing open, and keeps its reason", async () => {
  const { fixture, catalogue, seen, id } = makeDeployment(
    Effect.fail(apiError("backend_error", "no memory")),
  )
  await Effect.runPromise(
    Effect.scoped(
      Effect.gen(function* () {
        expect(yield* openModels(fixture, listener)).toEqual([id])
        expect(seen.open).toBe(0)
        seen.request!.progress("reading weights")
        expect(catalogue.state(id)).toMatchObject({ state: "failed", reason: "no memory" })
      }),
    ),
  )
})
