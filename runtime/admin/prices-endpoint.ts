import { Effect, Schema } from "effect"
import { formatDecimal } from "../../core/money.ts"
import { defineEndpoint, freePlan } from "../../core/ports/endpoint.ts"
import type { Price } from "../../core/pricing.ts"
import type { Catalogue } from "../../core/services/catalogue.ts"
import type { Clock } from "../../core/services/clock.ts"
import type { ModelEntry } from "../../core/services/model-entry.ts"
import { chosenAdapters } from "./model-facts.ts"

export interface PricesEndpointDeps {
  readonly catalogue: Catalogue
  readonly clock: Clock
  /** What brings a model or an adapter, by its name: a plugin, an included file, or `config`. */
  readonly originOf: (name: string) => string
}

/** Each kind of a price, with the number of units that it is for. */
const kinds = [
  { kind: "input", key: "input", per: "1000000 tokens" },
  { kind: "cache_read", key: "cacheRead", per: "1000000 tokens" },
  { kind: "cache_write", key: "cacheWrite", per: "1000000 tokens" },
  { kind: "output", key: "output", per: "1000000 tokens" },
  { kind: "image", key: "image", per: "image" },
  { kind: "audio_second", key: "audioSecond", per: "second" },
  { kind: "search_unit", key: "searchUnit", per: "search unit" },
] as const satisfies readonly {
  readonly kind: string
  readonly key: keyof Price
  readonly per: string
}[]

const decimal = Schema.String.annotate({ description: "Rp as a plain decimal, exact." })

const Priced = Schema.Struct({
  id: Schema.String,
  task: Schema.String,
  tier: Schema.String,
  origin: Schema.String.annotate({
    description: "The plugin or the included file that brings the model, or `config`.",
  }),
  adapters: Schema.Array(Schema.Struct({ id: Schema.String, origin: Schema.String })).annotate({
    description: "LoRAs, which are charged as their model.",
  }),
  prices: Schema.Array(
    Schema.Struct({
      kind: Schema.Literals(kinds.map(({ kind }) => kind)),
      per: Schema.String,
      configured_idr: decimal,
      idr: Schema.String.annotate({
        description:
          "What calls are charged now: 0 while the model is not open, and for what it can't do.",
      }),
      batch_idr: Schema.String.annotate({ description: "The same for lines of batches." }),
    }),
  ).annotate({ description: "Kinds without a price are left out." }),
})

export const PricesReply = Schema.Struct({
  object: Schema.Literal("prices"),
  since: Schema.Int.annotate({
    description: "Unix seconds: this server's start, when it read its config.",
  }),
  batch_price_factor: Schema.Finite,
  models: Schema.Array(Priced),
}).annotate({ identifier: "Prices" })

/** Nano-rupiah times the factor, which has at most three decimals. */
const times = (nano: bigint, factor: number): string =>
  formatDecimal(nano * BigInt(Math.round(factor * 1000)), 12)

const pricesOf = (configured: Price, inForce: Price, factor: number) =>
  kinds
    .filter(({ key }) => configured[key] > 0n || inForce[key] > 0n)
    .map(({ kind, key, per }) => ({
      kind,
      per,
      configured_idr: formatDecimal(configured[key], 9),
      idr: formatDecimal(inForce[key], 9),
      batch_idr: times(inForce[key], factor),
    }))

/** All prices, exact, with what brings them. */
export const pricesEndpoint = ({ catalogue, clock, originOf }: PricesEndpointDeps) => {
  const since = Math.floor(clock.nowMs() / 1000 - process.uptime())
  const toModel = (entry: ModelEntry) => ({
    id: entry.id,
    task: entry.task,
    tier: entry.tier,
    origin: originOf(entry.id),
    adapters: chosenAdapters(catalogue, entry).map((id) => ({ id, origin: originOf(id) })),
    prices: pricesOf(entry.price, catalogue.price(entry.id), catalogue.batchPriceFactor),
  })
  return defineEndpoint({
    id: "admin.prices",
    summary: "The prices in force, exact, with what brings them.",
    method: "GET",
    path: "/admin/prices",
    access: "admin",
    body: "none",
    maxBodyBytes: 0,
    reply: PricesReply,
    plan: () =>
      Effect.sync(() =>
        freePlan(
          Effect.sync(() => ({
            status: 200,
            headers: { "cache-control": "no-store" },
            json: {
              object: "prices",
              since,
              batch_price_factor: catalogue.batchPriceFactor,
              models: catalogue.entries.map(toModel),
            },
          })),
        ),
      ),
  })
}
