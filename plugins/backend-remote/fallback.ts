import { Effect, Stream } from "effect"
import { type ApiError, apiError, type ErrorCode } from "../../core/errors.ts"
import type { LoadedModel, ModelContext, Task, TaskName } from "../../core/ports/model.ts"
import type { ModelId } from "../../core/services/ids.ts"
import type { Usage } from "../../core/usage.ts"
import type { RemoteServices } from "./remote-model.ts"

export interface FallbackCall<Request> {
  readonly request: Request
  readonly context: ModelContext
  readonly bound: Usage
}

/** The run of a model, continued by the next of its chain where it fails before its first event. */
export type FallbackOf<Request, Event> = (
  call: FallbackCall<Request>,
  run: Stream.Stream<Event, ApiError>,
) => Stream.Stream<Event, ApiError>

/** What the chain can do about a failure: not about a request that is wrong everywhere. */
const isFinal = (error: ApiError): boolean => {
  const wrong: readonly ErrorCode[] = ["invalid_request_error", "content_policy_violation"]
  return wrong.includes(error.code)
}

const withinBound = (usage: Usage, bound: Usage): Usage =>
  Object.fromEntries(
    Object.entries(usage).map(([key, count]) => [key, Math.min(count, bound[key as keyof Usage])]),
  ) as unknown as Usage

/**
 * Returns the chain of a model. The model that was asked for is metered and priced, whichever
 * serves; `served_by` of the receipt names it.
 */
export const makeFallback = <T extends TaskName, Request, Event>(
  {
    id,
    task,
    chain,
  }: { readonly id: ModelId; readonly task: T; readonly chain: readonly ModelId[] },
  { catalogue, log, metricsOf }: RemoteServices,
  adapt: (request: Request, loaded: LoadedModel<T>, model: ModelId) => Request | undefined,
): FallbackOf<Request, Event> => {
  const runAt = (model: ModelId, { request, context, bound }: FallbackCall<Request>) =>
    Effect.gen(function* () {
      const loaded = yield* catalogue.open(task, model)
      const fitting = adapt(request, loaded, model)
      if (fitting === undefined)
        return yield* apiError("unsupported_parameter", `'${model}' can't do all of the request.`)
      const own: ModelContext = {
        ...context,
        meter: (_, soFar) => context.meter(id, withinBound(soFar, bound)),
      }
      const { run } = yield* (loaded.task as unknown as Task<Request, Event>).plan(fitting, own)
      log.warn("model.fell_back", "another model serves a request", { model: id, by: model })
      metricsOf(id).fellBack(model)
      context.note?.({ served_by: { model } })
      return run
    })
  return (call, run) => {
    const from = (
      current: Stream.Stream<Event, ApiError>,
      left: readonly ModelId[],
      first?: ApiError,
    ): Stream.Stream<Event, ApiError> => {
      const [next, ...rest] = left
      if (next === undefined && first === undefined) return current
      let hasBegun = false
      return current.pipe(
        Stream.tap(() =>
          Effect.sync(() => {
            hasBegun = true
          }),
        ),
        Stream.catch((error) => {
          if (hasBegun || isFinal(error)) return Stream.fail(error)
          if (next === undefined) return Stream.fail(first ?? error)
          return from(to(next), rest, first ?? error)
        }),
      )
    }
    const to = (model: ModelId) => Stream.unwrap(runAt(model, call))
    return from(run, chain)
  }
}
