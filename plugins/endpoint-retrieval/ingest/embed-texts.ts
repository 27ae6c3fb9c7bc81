import { Effect, Stream } from "effect"
import {
  type ApiError,
  apiError,
  type EmbedEvent,
  type LoadedModel,
  type ModelEntry,
  type ModelPlan,
  type Tenant,
} from "../../../core/index.ts"
import { checkVectors, spaceOf } from "../vectors/space.ts"
import type { VectorSpace } from "../vectors/vector-store.ts"
import type { IngestDeps } from "./ingest-deps.ts"

type Deps = Pick<IngestDeps, "catalogue" | "clock" | "ids" | "settings">

/** Texts that the model gets at once. */
export const batchSize = 64
/**
 * For a batch by itself: it waits behind all realtime calls, and a call's own deadline is too short
 * for a whole file.
 */
const batchMs = 600_000

interface PlannedTexts extends ModelPlan<EmbedEvent> {
  readonly entry: ModelEntry
  readonly loaded: LoadedModel<"embed">
}

const planTexts = (
  { catalogue, clock, ids, settings }: Deps,
  tenant: Tenant,
  texts: readonly string[],
): Effect.Effect<PlannedTexts, ApiError> =>
  Effect.gen(function* () {
    const entry = yield* catalogue.require("embed", settings.model)
    const loaded = yield* catalogue.open("embed", entry.id)
    const planned = yield* loaded.task.plan(
      { items: texts.map((text) => ({ type: "text", text })), truncate: "END" },
      {
        callId: ids.call(),
        tenant,
        priority: "batch",
        deadlineMs: clock.nowMs() + batchMs,
        // the tokens of all chunks are metered together
        meter: () => {},
        time: () => {},
      },
    )
    return { ...planned, entry, loaded }
  })

/** The number of tokens that the model reads of these texts. */
export const countTokens = (
  deps: Deps,
  tenant: Tenant,
  texts: readonly string[],
): Effect.Effect<number, ApiError> =>
  texts.length === 0
    ? Effect.succeed(0)
    : Effect.map(planTexts(deps, tenant, texts), ({ bound }) => bound.inputTokens)

export interface EmbeddedTexts {
  readonly space: VectorSpace
  /** In the order of the texts, as long as the model makes them. */
  readonly vectors: readonly Float32Array[]
}

/** Embeds up to `batchSize` texts, of which there is one. */
export const embedTexts = (
  deps: Deps,
  tenant: Tenant,
  texts: readonly string[],
): Effect.Effect<EmbeddedTexts, ApiError> =>
  Effect.gen(function* () {
    const { entry, loaded, run } = yield* planTexts(deps, tenant, texts)
    const byIndex = new Map(
      (yield* Stream.runCollect(run)).map(({ index, vector }) => [index, vector]),
    )
    const vectors = texts.flatMap((_, index) => byIndex.get(index) ?? [])
    if (vectors.length < texts.length)
      return yield* apiError("backend_error", "The model did not embed every text.")
    const space = spaceOf(entry, loaded, vectors[0]!.length)
    yield* checkVectors(space, vectors)
    return { space, vectors }
  })
