import { Cause, Effect, Exit, Scope } from "effect"
import { type ApiError, apiError } from "../../core/errors.ts"
import type { LoadedModel } from "../../core/ports/model.ts"
import type { ModelId } from "../../core/services/ids.ts"
import { adapterName, type ModelEntry, type ModelSource } from "../../core/services/model-entry.ts"
import { resolve, Tokens } from "../../core/tokens.ts"
import type { PullProgress } from "../services/model-files/pull.ts"
import { pullVerified } from "../services/model-files/verified-pull.ts"
import type { AssembledDeployment } from "./assemble.ts"
import { reasonOf, shortfall } from "./served-models.ts"

/** Receives the progress of pulls. */
export interface PullListener {
  report(progress: PullProgress): void
  done(model: ModelId): void
}

/** The files of an entry: its own, and those of its adapters. */
export const filesOf = ({ id, sources, adapters }: ModelEntry) =>
  [
    { id, sources },
    ...adapters.map((adapter) => ({ id: adapterName(id, adapter), sources: adapter.sources })),
  ].filter((files) => files.sources.length > 0)

/**
 * Says why files can't be used that are this machine's own, so that no pull brings them; undefined
 * where they can, and for those that are pulled.
 */
export const localTrouble = (
  { modelFiles }: Pick<AssembledDeployment, "modelFiles">,
  { sources }: Pick<ModelEntry, "sources">,
): Effect.Effect<string | undefined> =>
  Effect.gen(function* () {
    const areLocal = sources.every(({ url }) => url.startsWith("file:"))
    if (!areLocal || (yield* modelFiles.find(sources))) return undefined
    return (yield* modelFiles.verify(sources)).join("; ")
  })

/** Returns the path of some files of the model. */
const pullFiles = (
  { container, modelFiles }: AssembledDeployment,
  model: ModelId,
  id: ModelId,
  sources: readonly ModelSource[],
  listener: PullListener,
) => {
  const catalogue = resolve(container, Tokens.catalogue)
  const onProgress = (progress: PullProgress) => {
    const { doneBytes, totalBytes } = progress
    catalogue.set(model, { state: "pulling", doneBytes, totalBytes })
    listener.report(progress)
  }
  return pullVerified(modelFiles, resolve(container, Tokens.log), id, sources, onProgress).pipe(
    Effect.ensuring(Effect.sync(() => listener.done(id))),
  )
}

/** Returns the paths of the model's files, empty for a model without files, and of its adapters. */
const pullAll = (deployment: AssembledDeployment, entry: ModelEntry, listener: PullListener) =>
  Effect.gen(function* () {
    const pull = (id: ModelId, sources: readonly ModelSource[]) =>
      pullFiles(deployment, entry.id, id, sources, listener)
    const path = entry.sources.length > 0 ? yield* pull(entry.id, entry.sources) : ""
    const adapters = yield* Effect.forEach(entry.adapters, (adapter) =>
      Effect.map(pull(adapterName(entry.id, adapter), adapter.sources), (found) => ({
        id: adapter.id,
        path: found,
      })),
    )
    return { path, adapters }
  })

const refuseMissing = (
  { id, backend, adapters, modalities }: ModelEntry,
  served: Pick<LoadedModel, "adapters" | "parts">,
): Effect.Effect<void, ApiError> => {
  const open = [...served.adapters, ...(served.parts ?? [])]
  const missing = adapters.filter((adapter) => !open.includes(adapter.id))
  return missing.length === 0
    ? Effect.void
    : Effect.fail(
        apiError(
          "backend_error",
          `The backend '${backend}' can't serve the adapters of the model '${id}': ${missing.map((adapter) => adapter.id).join(", ")} (its modalities: ${modalities.join(", ")})`,
        ),
      )
}

const openOne = (
  deployment: AssembledDeployment,
  entry: ModelEntry,
  listener: PullListener,
): Effect.Effect<boolean, never, Scope.Scope> =>
  Effect.gen(function* () {
    const catalogue = resolve(deployment.container, Tokens.catalogue)
    const log = resolve(deployment.container, Tokens.log)
    const backend = deployment.backends.find((b) => b.name === entry.backend)!
    const startedMs = performance.now()
    // a failed open releases at once what it has acquired
    const scope = yield* Scope.make()
    yield* Effect.addFinalizer((exit) => Scope.close(scope, exit))
    let isDecided = false
    return yield* Effect.gen(function* () {
      const files = yield* pullAll(deployment, entry, listener)
      // a backend may report progress after the open, when it restarts an engine; the state stays
      // `ready`
      const progress = (detail: string) => {
        if (!isDecided) catalogue.set(entry.id, { state: "loading", detail })
      }
      progress("opening")
      const opened = yield* backend
        .open({
          id: entry.id,
          task: entry.task,
          ...files,
          options: entry.options,
          modalities: entry.modalities,
          contextTokens: entry.contextTokens,
          progress,
        })
        .pipe(Scope.provide(scope))
      yield* refuseMissing(entry, opened)
      isDecided = true
      const loaded = deployment.modelMetrics.watch(entry, opened)
      catalogue.set(entry.id, { state: "ready", loaded })
      log.info("model.ready", "model ready", {
        model: entry.id,
        served_by: loaded.servedAt ?? loaded.servedBy,
        context_tokens: loaded.contextTokens,
        seconds: Math.round(performance.now() - startedMs) / 1000,
      })
      const less = shortfall(entry, catalogue.served(entry))
      if (less !== undefined)
        log.info("model.serves_less", "the model serves less than the config promises", {
          model: entry.id,
          serves: less,
        })
      return true
    }).pipe(
      Effect.catchCause((cause) => {
        if (Cause.hasInterruptsOnly(cause)) return Effect.succeed(false)
        isDecided = true
        const reason = reasonOf(cause)
        // the stack of one that threw is for the log: everybody reads /readyz
        const shown = reason.replace(/\n +at .*/s, "")
        catalogue.set(entry.id, { state: "failed", reason: shown })
        log.error("model.open_failed", "model can't be opened", { model: entry.id, reason })
        return Effect.as(Scope.close(scope, Exit.void), false)
      }),
    )
  })

/**
 * Pulls and opens the `wanted` models (default: all), four at a time. A failure does not stop the
 * others. Returns the ids that failed.
 */
export const openModels = (
  deployment: AssembledDeployment,
  listener: PullListener,
  wanted?: readonly ModelId[],
): Effect.Effect<readonly string[], never, Scope.Scope> => {
  const { entries } = resolve(deployment.container, Tokens.catalogue)
  const chosen = wanted ? entries.filter(({ id }) => wanted.includes(id)) : entries
  return Effect.forEach(
    chosen,
    (entry) => Effect.map(openOne(deployment, entry, listener), (ok) => (ok ? [] : [entry.id])),
    { concurrency: 4 },
  ).pipe(Effect.map((failed) => failed.flat()))
}
