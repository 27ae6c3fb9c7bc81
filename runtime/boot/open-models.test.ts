import "reflect-metadata/lite"
import { Effect, Exit, Scope } from "effect"
import { container } from "tsyringe"
import { expect, it } from "vitest"
import { apiError } from "../../core/errors.ts"
import type { Backend, LoadedModel, OpenRequest } from "../../core/ports/model.ts"
import { makeCatalogue } from "../../core/services/catalogue.ts"
import type { ModelEntry } from "../../core/services/model-entry.ts"
import { provide, Tokens } from "../../core/tokens.ts"
import { fakeChatModel, fakeClock, fakeLog, fakeMetrics } from "../../testing/index.ts"
import { makeModelMetrics } from "../services/model-metrics.ts"
import type { AssembledDeployment } from "./assemble.ts"
import { openModels } from "./open-models.ts"

const listener = { report: () => {}, done: () => {} }

/** One model without files; what its backend opens is counted. */
const makeDeployment = (
  outcome: Effect.Effect<void, ReturnType<typeof apiError>>,
  adapters: ModelEntry["adapters"] = [],
  served: Partial<Pick<LoadedModel, "adapters" | "parts">> = {},
) => {
  const { entry, loaded: model } = fakeChatModel()
  const loaded = { ...model, ...served }
  const catalogue = makeCatalogue([{ ...entry, backend: "counting", sources: [], adapters }])
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
      modelFiles: {
        find: () => Effect.succeed(undefined),
        pull: (model: string) => Effect.succeed(`/pulled/${model}`),
      },
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

const legal = [{ id: "legal", sources: [{ url: "file:legal/" }] }]

it.each([{ adapters: ["legal"] }, { parts: ["legal"] }])(
  "adapters are pulled with the model, and opened with it: $adapters $parts",
  async (served) => {
    const { fixture, catalogue, seen, id } = makeDeployment(Effect.void, legal, served)
    expect(await Effect.runPromise(Effect.scoped(openModels(fixture, listener)))).toEqual([])
    expect(seen.request?.adapters).toEqual([{ id: "legal", path: `/pulled/${id}:legal` }])
    expect(catalogue.state(id).state).toBe("ready")
  },
)

it("a model whose backend throws keeps the message, and shows nobody the stack", async () => {
  const { fixture, catalogue, id } = makeDeployment(Effect.die(new Error("it threw")))
  await Effect.runPromise(Effect.scoped(openModels(fixture, listener)))
  expect(catalogue.state(id)).toEqual({ state: "failed", reason: "Error: it threw" })
})

it("a backend that leaves an adapter out can't serve the model: nobody gets other answers", async () => {
  const { fixture, catalogue, seen, id } = makeDeployment(Effect.void, legal)
  expect(await Effect.runPromise(Effect.scoped(openModels(fixture, listener)))).toEqual([id])
  expect(catalogue.state(id)).toMatchObject({
    state: "failed",
    reason: expect.stringContaining(
      "can't serve the adapters of the model 'svc-lyt': legal (its modalities: text)",
    ),
  })
  expect(seen.open).toBe(0)
})
