import { rupiahNumber } from "../../core/money.ts"
import type { Price } from "../../core/pricing.ts"
import type { ModelEntry } from "../../core/services/catalogue.ts"
import type { Model, ModelList } from "./schema.ts"

/** Converts nano-rupiah to rupiah. */
const shown = (nano: bigint): number => rupiahNumber(nano / 1000n)

/** Lists only what the model charges for; tokens per million. */
const toPricing = (price: Price): Model["pricing"] => ({
  ...(price.input > 0n && { input_idr: shown(price.input) }),
  ...(price.output > 0n && {
    output_idr: shown(price.output),
    cache_read_idr: shown(price.cacheRead),
    cache_write_idr: shown(price.cacheWrite),
  }),
  ...(price.image > 0n && { image_idr: shown(price.image) }),
  ...(price.searchUnit > 0n && { search_unit_idr: shown(price.searchUnit) }),
})

export const toModel = (entry: ModelEntry, created: number): Model => ({
  id: entry.id,
  object: "model",
  created,
  owned_by: entry.ownedBy,
  tier: entry.tier,
  context_window: entry.contextTokens,
  max_output_tokens: entry.maxOutputTokens,
  modalities: entry.modalities,
  capabilities: entry.capabilities,
  description: entry.description,
  pricing_model: entry.pricingModel,
  pricing: toPricing(entry.price),
})

/** Lists all models: the list has one page. */
export const toList = (entries: readonly ModelEntry[], created: number): ModelList => ({
  object: "list",
  data: entries.map((entry) => toModel(entry, created)),
  has_more: false,
  first_id: entries[0]?.id ?? null,
  last_id: entries.at(-1)?.id ?? null,
})
