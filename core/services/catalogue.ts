import { Effect } from "effect"
import { type ApiError, apiError } from "../errors.ts"
import type { LoadedModel, ModelAbilities, TaskName } from "../ports/model.ts"
import { defaultBatchPriceFactor, freePrice, type Price } from "../pricing.ts"
import type { ModelId } from "./ids.ts"
import { adapterNames, type ModelEntry, type ServedModel, servedModel } from "./model-entry.ts"

/** waiting -> pulling -> loading -> ready | failed */
export type ModelState =
  | { readonly state: "waiting" }
  | {
      readonly state: "pulling"
      readonly doneBytes: number
      readonly totalBytes: number | undefined
    }
  | { readonly state: "loading"; readonly detail: string }
  | { readonly state: "ready"; readonly loaded: LoadedModel }
  | { readonly state: "failed"; readonly reason: string }

export interface Catalogue {
  readonly entries: readonly ModelEntry[]
  /** By its id, or by the name of one of its adapters. */
  entry(id: ModelId): ModelEntry | undefined
  /**
   * Returns the entry of a model that fits the task; fails with 400 `model_not_found` otherwise, or
   * 404 for an unknown adapter of a known model.
   */
  require(task: TaskName, id: ModelId): Effect.Effect<ModelEntry, ApiError>
  /**
   * Returns the open model; fails also with 503 `model_loading`, or 500 `backend_error` when it
   * could not be opened.
   */
  open<T extends TaskName>(task: T, id: ModelId): Effect.Effect<LoadedModel<T>, ApiError>
  /** What is charged. */
  price(id: ModelId): Price
  /** What of the entry is served, as far as it is known yet: never more than the model can do. */
  served(entry: ModelEntry): ServedModel
  /** Called by the boot once all models are known. */
  add(entry: ModelEntry): void
  /** Called by the runtime with what is known of a model before it is open. */
  describe(id: ModelId, abilities: ModelAbilities): void
  /** The price of a batch line as a fraction of the list price. */
  readonly batchPriceFactor: number
  state(id: ModelId): ModelState
  /** Called by the runtime, which opens the models. */
  set(id: ModelId, state: ModelState): void
}

const notReady = (id: ModelId, state: ModelState): ApiError =>
  state.state === "failed"
    ? apiError(
        "backend_error",
        `The model '${id}' could not be opened; the operator finds the reason in the log.`,
      )
    : apiError(
        "model_loading",
        `The model '${id}' is still loading (${state.state}). Try again shortly.`,
        { retryAfterMs: 5_000 },
      )

export const makeCatalogue = (
  configured: readonly ModelEntry[],
  batchPriceFactor = defaultBatchPriceFactor,
): Catalogue => {
  const entries: ModelEntry[] = []
  const byId = new Map<ModelId, ModelEntry>()
  const states = new Map<ModelId, ModelState>()
  const served = new Map<ModelId, ServedModel>()
  const add = (entry: ModelEntry) => {
    entries.push(entry)
    for (const name of adapterNames(entry)) byId.set(name, entry)
    byId.set(entry.id, entry)
    served.set(entry.id, servedModel(entry))
  }
  configured.forEach(add)
  const describe = (id: ModelId, abilities: ModelAbilities) => {
    const entry = byId.get(id)
    if (entry) served.set(id, servedModel(entry, abilities))
  }
  const stateOf = (id: ModelId): ModelState => states.get(id) ?? { state: "waiting" }
  const require_ = (task: TaskName, id: ModelId) => {
    const entry = byId.get(id)
    if (entry?.task === task) return Effect.succeed(entry)
    const fitting = entries.flatMap((e) => (e.task === task ? [e.id, ...adapterNames(e)] : []))
    const why = entry
      ? `The model '${id}' can't be used at this endpoint`
      : "There is no such model here"
    const isAdapter = !entry && id.includes(":") && byId.has(id.slice(0, id.lastIndexOf(":")))
    return Effect.fail(
      apiError(
        "model_not_found",
        `${why}. ${fitting.length ? `Use '${fitting.join("', '")}'.` : "No model here fits this endpoint."}`,
        { param: "model", status: isAdapter ? 404 : undefined },
      ),
    )
  }
  return {
    entries,
    batchPriceFactor,
    entry: (id) => byId.get(id),
    require: require_,
    open: <T extends TaskName>(task: T, name: ModelId) =>
      Effect.flatMapEager(require_(task, name), ({ id }) => {
        const state = stateOf(id)
        return state.state === "ready"
          ? Effect.succeed(state.loaded as LoadedModel<T>)
          : Effect.fail(notReady(id, state))
      }),
    price: (id) => served.get(id)?.price ?? freePrice,
    served: (entry) => served.get(entry.id) ?? servedModel(entry),
    add,
    describe,
    state: stateOf,
    set: (id, state) => {
      states.set(id, state)
      if (state.state === "ready") describe(id, state.loaded)
    },
  }
}
