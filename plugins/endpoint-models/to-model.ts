import type { ModelEntry } from "../../core/catalogue.ts"
import { type Micros, rupiahNumber } from "../../core/money.ts"
import type { Price } from "../../core/pricing.ts"
import type { Model, ModelList } from "./wire.ts"

/** Pico-rupiah per piece -> micro-rupiah; see `Price`. */
const perPiece = (pico: bigint): Micros => pico / 1_000_000n

/** Only what the model charges for. A price per token in pico-rupiah is one per 1M tokens in micro-rupiah. */
const toPricing = (price: Price): Model["pricing"] => ({
  ...(price.input > 0n && { input_idr: rupiahNumber(price.input) }),
  ...(price.output > 0n && { output_idr: rupiahNumber(price.output) }),
  ...(price.image > 0n && { image_idr: rupiahNumber(perPiece(price.image)) }),
  ...(price.searchUnit > 0n && { search_unit_idr: rupiahNumber(perPiece(price.searchUnit)) }),
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

/** All of them: the list of models has one page. */
export const toList = (entries: readonly ModelEntry[], created: number): ModelList => ({
  object: "list",
  data: entries.map((entry) => toModel(entry, created)),
  has_more: false,
  first_id: entries[0]?.id ?? null,
  last_id: entries.at(-1)?.id ?? null,
})
