import { rupiahNumber } from "../../core/money.ts"
import type { Price } from "../../core/pricing.ts"
import type { Catalogue } from "../../core/services/catalogue.ts"
import { adapterNames, type ModelEntry } from "../../core/services/model-entry.ts"
import type { Model, ModelList } from "./schema.ts"

/** Converts nano-rupiah to rupiah. */
const shown = (nano: bigint): number => rupiahNumber(nano / 1000n)

/** Lists only what the model charges for; tokens per million. */
const toPricing = (price: Price): Model["pricing"] => ({
  ...(price.input > 0n && { input_idr: shown(price.input) }),
  ...(price.output > 0n && { output_idr: shown(price.output) }),
  ...(price.cacheRead > 0n && { cache_read_idr: shown(price.cacheRead) }),
  ...(price.cacheWrite > 0n && { cache_write_idr: shown(price.cacheWrite) }),
  ...(price.image > 0n && { image_idr: shown(price.image) }),
  ...(price.audioSecond > 0n && { audio_second_idr: shown(price.audioSecond) }),
  ...(price.searchUnit > 0n && { search_unit_idr: shown(price.searchUnit) }),
})

const pricingModel = ({ searchUnit, audioSecond, input, output, image }: Price): string => {
  if (searchUnit > 0n) return "per_search_unit"
  if (input > 0n || output > 0n) return "per_token"
  if (audioSecond > 0n) return "per_audio_second"
  return image > 0n ? "per_image" : "free"
}

/** What only an open model says. */
const whenOpen = (catalogue: Catalogue, { id, task }: ModelEntry): Partial<Model> => {
  const state = catalogue.state(id)
  if (state.state !== "ready") return {}
  const { servedBy, embeddingSpace, adapters, advisedSampling } = state.loaded
  return {
    served_by: servedBy,
    ...(embeddingSpace !== undefined && { embedding_space: embeddingSpace }),
    ...(task === "image" && adapters.length > 0 && { loras: adapters }),
    ...(advisedSampling && { recommended_sampling: advisedSampling }),
  }
}

/** What is served of an entry; a longer window that config promises stands beside it. */
export const toModel = (
  catalogue: Catalogue,
  entry: ModelEntry,
  created: number,
  id = entry.id,
): Model => {
  const served = catalogue.served(entry)
  return {
    id,
    object: "model",
    created,
    owned_by: entry.ownedBy,
    root: entry.id,
    parent: id === entry.id ? null : entry.id,
    tier: entry.tier,
    context_window: served.contextTokens,
    ...(served.contextTokens !== entry.contextTokens && {
      advertised_context_window: entry.contextTokens,
    }),
    max_output_tokens: served.maxOutputTokens,
    modalities: served.modalities,
    capabilities: served.capabilities,
    ...whenOpen(catalogue, entry),
    description: entry.description,
    pricing_model: pricingModel(served.price),
    pricing: toPricing(served.price),
  }
}

/** Lists all models, each with its adapters behind it: the list has one page. */
export const toList = (catalogue: Catalogue, created: number): ModelList => {
  const data = catalogue.entries.flatMap((entry) => [
    toModel(catalogue, entry, created),
    ...adapterNames(entry).map((name) => toModel(catalogue, entry, created, name)),
  ])
  return {
    object: "list",
    data,
    has_more: false,
    first_id: data[0]?.id ?? null,
    last_id: data.at(-1)?.id ?? null,
  }
}
