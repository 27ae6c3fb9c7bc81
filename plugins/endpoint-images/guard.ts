import { Effect, Stream } from "effect"
import { type ApiError, apiError, type PortError, portFailure } from "../../core/errors.ts"
import type { ImageEvent, ImageSafety } from "../../core/ports/image.ts"
import type { ModelContext } from "../../core/ports/model.ts"
import type { Clock } from "../../core/services/clock.ts"
import type { ModelId } from "../../core/services/ids.ts"
import type { Log } from "../../core/services/log.ts"
import type { Metrics } from "../../core/services/metrics.ts"
import type { Usage } from "../../core/usage.ts"

export interface GuardDeps {
  readonly clock: Clock
  readonly log: Log
  readonly metrics: Metrics
  /** Undefined: no plugin provides it, and nothing is refused. */
  readonly safety: () => ImageSafety | undefined
}

/** What is refused: a prompt, a picture, or a preview of one. */
type Stage = "prompt" | "picture" | "preview"

/** Asks the port of image safety, and charges for no picture that it refuses. */
export interface Guard {
  /** Fails with `content_policy_violation` for a prompt that belongs to a category. */
  prompt(text: string, context: ModelContext): Effect.Effect<void, ApiError>
  /**
   * `run` gets a context whose usage is reported only when the picture that it makes has passed.
   * Pictures and previews are checked before anybody sees them. A preview that doesn't pass is left
   * out: early steps are noise, so only the picture decides about the call.
   */
  picture<E>(
    context: ModelContext,
    run: (held: ModelContext) => Effect.Effect<Stream.Stream<ImageEvent, ApiError>, E>,
  ): Effect.Effect<Stream.Stream<ImageEvent, ApiError>, E>
}

export const makeGuard = ({ clock, log, metrics, safety }: GuardDeps): Guard => {
  const refusals = metrics.counter(
    "rakit_safety_refusals_total",
    "Prompts and pictures of image requests that the safety filters refused, and previews.",
    ["stage", "category"],
  )
  const failed = (error: PortError): ApiError => {
    if (error.why !== "busy")
      log.error("image_safety.failed", "the safety check of an image request failed", {
        port: error.port,
        reason: error.message,
      })
    return portFailure(error)
  }
  const pass = (
    stage: Stage,
    context: ModelContext,
    category: Effect.Effect<string | undefined, PortError>,
  ): Effect.Effect<void, ApiError> =>
    Effect.gen(function* () {
      const beganMs = clock.monotonicMs()
      const found = yield* Effect.mapError(category, failed)
      context.time("safety", clock.monotonicMs() - beganMs)
      if (found === undefined) return
      refusals.add(1, { stage, category: found })
      const what = stage === "prompt" ? "prompt" : "picture"
      return yield* apiError(
        "content_policy_violation",
        `The safety filters refused the ${what} (${found}). Nothing was charged.`,
        { param: stage === "prompt" ? "prompt" : undefined },
      )
    })
  return {
    prompt: (text, context) =>
      Effect.suspend(() => {
        const port = safety()
        return port ? pass("prompt", context, port.prompt(text)) : Effect.void
      }),
    picture: (context, run) =>
      Effect.suspend(() => {
        const port = safety()
        const held = new Map<ModelId, Usage>()
        const meter = (model: ModelId, soFar: Usage) => void held.set(model, soFar)
        // the file and its check take time after the last step, which the model's deadline doesn't see
        const passed = Effect.suspend(() => {
          if (clock.nowMs() > context.deadlineMs) return apiError("backend_timeout")
          for (const [model, usage] of held) context.meter(model, usage)
          return Effect.void
        })
        const check = (event: ImageEvent): Effect.Effect<ImageEvent, ApiError> => {
          if (event.type === "image") {
            const checked = port ? pass("picture", context, port.picture(event.bytes)) : Effect.void
            return Effect.as(Effect.andThen(checked, passed), event)
          }
          if (!port || !event.preview) return Effect.succeed(event)
          return pass("preview", context, port.picture(event.preview)).pipe(
            Effect.as(event),
            Effect.catch(() =>
              Effect.succeed<ImageEvent>({ type: "step", step: event.step, steps: event.steps }),
            ),
          )
        }
        return Effect.map(run({ ...context, meter }), (events) => Stream.mapEffect(events, check))
      }),
  }
}
