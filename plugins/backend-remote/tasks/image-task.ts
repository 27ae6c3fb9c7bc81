import { Effect, Stream } from "effect"
import type { ApiError } from "../../../core/errors.ts"
import type { ImageEvent } from "../../../core/ports/image.ts"
import type { ImageRequest, ModelContext, ModelPlan, Task } from "../../../core/ports/model.ts"
import type { Outbound } from "../../../core/services/outbound.ts"
import { usageOf } from "../../../core/usage.ts"
import type { FallbackOf } from "../fallback.ts"
import type { RemoteModel } from "../remote-model.ts"
import { asApiError } from "../upstream/failure.ts"
import type { Upstream } from "../upstream/upstream.ts"
import { ableToDraw, ignoredBy, imageCall } from "./image-body.ts"
import { eventsOf, openPicture, stepsUpTo } from "./image-stream.ts"
import { isRefusal, planJson } from "./json-task.ts"
import { pictureIn } from "./picture.ts"

type Fallback = FallbackOf<ImageRequest, ImageEvent>

const one = usageOf({ images: 1 })

/** The picture with what of the request did not make it. */
const named = (event: ImageEvent, upstream: Upstream, request: ImageRequest): ImageEvent => {
  const ignored = ignoredBy(upstream, request)
  return event.type === "image" && ignored.length > 0 ? { ...event, ignored } : event
}

/** A picture that comes whole: its steps are said when they are over. */
const planWhole = (
  model: RemoteModel,
  outbound: Outbound,
  fallback: Fallback,
  request: ImageRequest,
  context: ModelContext,
) => {
  const { upstreams, options, clock } = model
  return planJson<ImageRequest, ImageEvent>(model, fallback, {
    request,
    context,
    bound: one,
    able: ableToDraw(request, upstreams),
    callOf: (upstream) => ({
      ...imageCall(request, upstream),
      read: (answer) => {
        const leftMs = Math.min(options.firstByteTimeoutMs, context.deadlineMs - clock.nowMs())
        const steps = upstream.features.has("num_steps") ? request.steps : 0
        return Effect.map(pictureIn(answer, request, outbound, leftMs), (bytes) => ({
          events: [
            ...stepsUpTo(0, steps, steps),
            named({ type: "image", mediaType: "image/png", bytes }, upstream, request),
          ],
          usage: one,
          reported: 0,
        }))
      },
    }),
  })
}

/** A picture with previews, which come as the upstream streams them. */
const planStreamed = (
  model: RemoteModel,
  fallback: Fallback,
  request: ImageRequest,
  context: ModelContext,
): Effect.Effect<ModelPlan<ImageEvent>, ApiError> =>
  Effect.suspend(() => {
    const { id, options, clock, metrics, upstreams } = model
    const able = ableToDraw(request, upstreams)
    if (isRefusal(able) && options.fallback.length === 0) return Effect.fail(able)
    const leftMs = () => context.deadlineMs - clock.nowMs()
    const firstMs = () => Math.min(options.firstByteTimeoutMs, leftMs())
    const served = Effect.gen(function* () {
      if (isRefusal(able)) return yield* able
      const open = (upstream: Upstream) => openPicture(request, upstream, firstMs())
      const attempt = model.attempts(able, undefined, open)
      const { value, upstream, attempts, lost } = yield* Effect.mapError(attempt, asApiError)
      context.note?.({ served_by: { model: id, upstream: upstream.name, attempts } })
      let isDone = false
      yield* Effect.addFinalizer(() =>
        Effect.sync(() => {
          if (!isDone) metrics.ended(upstream, "cancelled")
        }),
      )
      return eventsOf(value, firstMs).pipe(
        Stream.mapError((why) => {
          isDone = true
          lost(why)
          return asApiError(why)
        }),
        Stream.map((event) => {
          if (event.type !== "image") return event
          isDone = true
          context.meter(id, one)
          metrics.ended(upstream, "ok")
          return named(event, upstream, request)
        }),
      )
    })
    return Effect.succeed({
      bound: one,
      run: fallback({ request, context, bound: one }, Stream.unwrap(served)),
    })
  })

/** The image task of a remote model. A picture costs one image, when it is there. */
export const makeImageTask = (
  model: RemoteModel,
  outbound: Outbound,
  fallback: Fallback,
): Task<ImageRequest, ImageEvent> => ({
  plan: (request, context) =>
    (request.previews ?? 0) > 0
      ? planStreamed(model, fallback, request, context)
      : planWhole(model, outbound, fallback, request, context),
})
