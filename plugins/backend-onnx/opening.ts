import { Effect, Schema, type Scope } from "effect"
import { type ApiError, apiError } from "../../core/errors.ts"
import type { LoadedModel, OpenRequest } from "../../core/ports/model.ts"
import type { EngineOf, OnnxDeps } from "./engines.ts"
import type { DecoderEvent, DecoderInfo, DecoderRequest } from "./generation/decoder-jobs.ts"
import type { EngineSpec } from "./worker/protocol.ts"

/** Opens the model of an entry of one task. */
export type OpenEntry = (
  deps: OnnxDeps,
  engineOf: EngineOf,
  request: OpenRequest,
) => Effect.Effect<
  | LoadedModel<"chat">
  | LoadedModel<"embed">
  | LoadedModel<"rerank">
  | LoadedModel<"image">
  | LoadedModel<"transcribe">,
  ApiError,
  Scope.Scope
>

export const failed = (message: string): ApiError => apiError("backend_error", message)

/** Decodes the options of an entry. */
export const optionsOf = <A>(
  schema: Schema.Codec<A, unknown>,
  request: OpenRequest,
): Effect.Effect<A, ApiError> =>
  Effect.mapError(Schema.decodeUnknownEffect(schema)(request.options ?? {}), (error) =>
    failed(`The options of the model '${request.id}' are wrong: ${error.message}`),
  )

export const shape = { modalities: ["text"], capabilities: [], adapters: [], servedBy: "onnx cpu" }

/** Chat and rerank models are both decoders, and share an engine where they name the same file. */
export const openDecoderModel = Effect.fnUntraced(function* (
  deps: OnnxDeps,
  engineOf: EngineOf,
  precisions: Pick<EngineSpec, "precision" | "promptPrecision">,
  request: OpenRequest,
) {
  const { engine } = yield* engineOf<DecoderRequest, DecoderEvent, DecoderInfo>(
    { kind: "decoder", ...precisions },
    request,
  )
  const contextTokens = Math.min(request.contextTokens, engine.info.contextTokens)
  const services = deps.services()
  if (engine.info.roundingDiffers)
    services.log.warn(
      "model.rounding_differs",
      "this CPU or device computes a row differently in other company, so the same request may get another answer",
      { model: request.id },
    )
  return {
    id: request.id,
    engine,
    contextTokens,
    open: {
      contextTokens,
      stats: () => ({
        ...engine.stats(),
        reproducible: engine.info.digest === undefined ? 0 : 1,
      }),
    },
    ...services,
  }
})
