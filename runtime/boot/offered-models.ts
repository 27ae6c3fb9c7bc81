import { isDeepStrictEqual } from "node:util"
import { Result, Schema } from "effect"
import type { AdapterOffer, ModelOffer } from "../../core/ports/model-offer.ts"
import { adapterName } from "../../core/services/model-entry.ts"
import { anchorModel, anchorSources } from "../config/anchor.ts"
import { decodePart, getIn } from "../config/decode.ts"
import { type ConfigPath, configPath, type Problem } from "../config/problems.ts"
import { AdapterConfig, ModelConfig, maxAdapters } from "../config/schema.ts"
import type { NamedPlugin } from "./load-plugins.ts"
import { type PlacedModel, placeOf } from "./models.ts"

/** What a plugin has registered. */
export interface Offered {
  readonly by: NamedPlugin
  /** The plugin's, decoded: a package's model may have its id and its price from them. */
  readonly settings: unknown
  readonly models: readonly ModelOffer[]
  readonly adapters: readonly AdapterOffer[]
}

/** An adapter of a plugin, for a model of anybody's. */
interface PlacedAdapter {
  readonly by: NamedPlugin
  readonly adapter: typeof OfferedAdapter.Type
}

const OfferedAdapter = Schema.Struct({ ...AdapterConfig.fields, model: Schema.String })

interface Checked<A> {
  readonly values: readonly A[]
  readonly problems: readonly Problem[]
}

const inPlugin = ({ key }: NamedPlugin, message: string, fix: string): Problem => ({
  path: ["plugins", key],
  message,
  fix,
})

/**
 * Decodes offers as the config file is decoded; a problem names the offer and its field. A value that
 * the plugin has from its settings is wrong at its line of the config file.
 */
const decodeAll = <A>(
  schema: Schema.Codec<A, unknown>,
  { by, settings }: Offered,
  offers: readonly { readonly id: string }[],
  what: string,
): Checked<A> => {
  const decoded = offers.map((offer) => decodePart(schema, offer, [], new Set()))
  const nameOf = (index: number) => {
    const id: unknown = offers[index]?.id
    return typeof id === "string" ? `its ${what} '${id}'` : `its ${what} number ${index + 1}`
  }
  const isSet = (index: number, path: ConfigPath): boolean => {
    const value = getIn(settings, path)
    return value !== undefined && isDeepStrictEqual(value, getIn(offers[index], path))
  }
  const problems = decoded.flatMap((one, index) =>
    Result.isSuccess(one)
      ? []
      : one.failure.map(({ path, message, fix }): Problem => {
          if (isSet(index, path)) return { path: ["plugins", by.key, ...path], message, fix }
          const field = path.length > 0 ? `, ${configPath(path)}` : ""
          return inPlugin(by, `${nameOf(index)}${field}: ${message}`, `in the plugin: ${fix}`)
        }),
  )
  return {
    values: decoded.filter(Result.isSuccess).map(({ success }) => success),
    // a setting that several of the package's models have is wrong once
    problems: problems.filter(
      (problem, at) => problems.findIndex((other) => isDeepStrictEqual(other, problem)) === at,
    ),
  }
}

/** One id names one model: neither the config file nor the later plugin wins. */
const listedTwice = (models: readonly PlacedModel[]): readonly Problem[] =>
  models.flatMap((placed, index) => {
    const first = models.slice(0, index).find(({ model }) => model.id === placed.model.id)
    return first === undefined || placed.plugin === undefined
      ? []
      : [
          {
            path: placed.at,
            message: `the model '${placed.model.id}' comes from ${placeOf(first)} and from ${placeOf(placed)}`,
            fix: "remove one of the two, or give it another id (where the package has a setting for that).",
          },
        ]
  })

const withAdapter = (placed: PlacedModel, { by, adapter }: PlacedAdapter): PlacedModel => {
  const { model: _, ...own } = adapter
  return {
    ...placed,
    model: { ...placed.model, adapters: [...placed.model.adapters, own] },
    adapterPlugins: new Map([...(placed.adapterPlugins ?? []), [own.id, by.key]]),
  }
}

/**
 * Attaches each adapter to its model; one without a model, with a name that is taken, or too many
 * for a model is refused.
 */
const attach = (
  models: readonly PlacedModel[],
  adapters: readonly PlacedAdapter[],
): Checked<PlacedModel> => {
  const values = [...models]
  const problems: Problem[] = []
  for (const { by, adapter } of adapters) {
    const at = values.findIndex(({ model }) => model.id === adapter.model)
    const placed = values[at]
    const name = adapterName(adapter.model, adapter)
    const ids = values.map(({ model }) => `'${model.id}'`).join(", ") || "none"
    if (placed === undefined)
      problems.push(
        inPlugin(
          by,
          `its adapter '${adapter.id}' is for the model '${adapter.model}', which this deployment does not have`,
          `add the model, or remove the plugin. Models here: ${ids}.`,
        ),
      )
    else if (placed.model.adapters.some(({ id }) => id === adapter.id)) {
      problems.push(
        inPlugin(
          by,
          `the adapter '${name}' comes from ${placeOf(placed, adapter.id)} and from the plugin '${by.key}'`,
          "remove one of the two.",
        ),
      )
    } else if (placed.model.adapters.length === maxAdapters)
      problems.push(
        inPlugin(
          by,
          `with its adapter '${adapter.id}' the model '${adapter.model}' has more than ${maxAdapters} adapters`,
          "remove the plugin, or other adapters of the model.",
        ),
      )
    else values[at] = withAdapter(placed, { by, adapter })
  }
  return { values, problems }
}

/**
 * Checks what plugins bring as the config file is checked. Returns all models of the deployment,
 * with their adapters.
 */
export const withOffers = (
  configured: readonly PlacedModel[],
  offered: readonly Offered[],
): Checked<PlacedModel> => {
  const brought = offered.map((offer) => {
    const { by } = offer
    const anchored = <A>(values: readonly A[], anchor: (value: A, folder: string) => A) =>
      values.map((value) => (by.folder === undefined ? value : anchor(value, by.folder)))
    const own = decodeAll(ModelConfig, offer, offer.models, "model")
    const loras = decodeAll(OfferedAdapter, offer, offer.adapters, "adapter")
    return {
      models: anchored(own.values, anchorModel).map(
        (model): PlacedModel => ({ model, at: ["plugins", by.key], plugin: by.key }),
      ),
      adapters: anchored(loras.values, anchorSources).map((adapter) => ({ by, adapter })),
      problems: [...own.problems, ...loras.problems],
    }
  })
  const models = [...configured, ...brought.flatMap((one) => one.models)]
  const problems = [...brought.flatMap((one) => one.problems), ...listedTwice(models)]
  // an adapter of a model that could not be read would be reported as one without a model
  if (problems.length > 0) return { values: models, problems }
  return attach(
    models,
    brought.flatMap((one) => one.adapters),
  )
}
