import { Schema } from "effect"
import type { Price } from "../pricing.ts"
import type { ModelId } from "../services/ids.ts"
import type { AdapterEntry, ModelEntry } from "../services/model-entry.ts"

type Defaulted =
  | "tier"
  | "ownedBy"
  | "description"
  | "modalities"
  | "capabilities"
  | "adapters"
  | "options"

/**
 * A model that a plugin brings, as an entry of `models` in the config file says it; boot checks
 * both by one schema. `file:` sources are relative to the plugin's module.
 */
export interface ModelOffer
  extends Pick<ModelEntry, "id" | "task" | "backend" | "sources">,
    Partial<Pick<ModelEntry, Defaulted>> {
  readonly limits: Pick<ModelEntry, "contextTokens"> &
    Partial<Pick<ModelEntry, "maxOutputTokens" | "defaultMaxTokens">>
  /** Rupiah, as in the config file. */
  readonly price?: { readonly [K in keyof Price]?: number }
}

/** An adapter that a plugin brings for a model of the config file or of another plugin. */
export interface AdapterOffer extends AdapterEntry {
  readonly model: ModelId
}

/** What an operator may set of a package's model. */
export const ModelOfferSettings = Schema.Struct({
  id: Schema.optionalKey(Schema.String).annotate({ description: "Its name in requests." }),
  price: Schema.optionalKey(Schema.Record(Schema.String, Schema.Finite)).annotate({
    description: "Instead of the price that the package suggests; see `models` for its keys.",
  }),
})
