import { Result } from "effect"
import type { Backend } from "../../core/ports/model.ts"
import { parsePrice } from "../../core/pricing.ts"
import { adapterName, type ModelEntry } from "../../core/services/model-entry.ts"
import { type Token, Tokens } from "../../core/tokens.ts"
import type { LoadedConfig } from "../config/load.ts"
import { type ConfigPath, configPath, type Problem } from "../config/problems.ts"
import type { ModelConfig } from "../config/schema.ts"
import { parseSourceUrl } from "../services/model-files/sources/source-url.ts"
import type { MissingProvider } from "./suggest-plugins.ts"

export const toEntry = (model: ModelConfig): ModelEntry => ({
  id: model.id,
  task: model.task,
  tier: model.tier,
  ownedBy: model.ownedBy,
  description: model.description,
  ...model.limits,
  modalities: model.modalities,
  capabilities: model.capabilities,
  price: parsePrice(model.price),
  backend: model.backend,
  sources: model.sources,
  adapters: model.adapters,
  options: model.options,
})

/** A model with the place that names it. */
export interface PlacedModel {
  readonly model: ModelConfig
  readonly at: ConfigPath
  /** The included file that has it. */
  readonly file?: string | undefined
  /** The key of the plugin that brings it; undefined for those of the config file. */
  readonly plugin?: string
  /** Keys of the plugins that bring adapters for it, by the adapters' ids. */
  readonly adapterPlugins?: ReadonlyMap<string, string>
}

export const configuredModels = (config: LoadedConfig): readonly PlacedModel[] =>
  config.deployment.models.map((model, index) => ({
    model,
    at: ["models", index],
    file: config.includedFrom(index),
  }))

/** What brings a model or, by its name, an adapter: a plugin, an included file, or the config. */
export const originOf = (models: readonly PlacedModel[], name: string): string =>
  models
    .flatMap(({ model, plugin, file, adapterPlugins }) => [
      { name: model.id, from: plugin ?? file },
      ...model.adapters.map((own) => ({
        name: adapterName(model.id, own),
        from: adapterPlugins?.get(own.id) ?? plugin ?? file,
      })),
    ])
    .find((one) => one.name === name)?.from ?? "config"

/** The same in words, of a model or of an adapter that it has. */
export const placeOf = (
  { plugin, file, adapterPlugins }: PlacedModel,
  adapter?: string,
): string => {
  const from = (adapter !== undefined && adapterPlugins?.get(adapter)) || plugin
  return from === undefined ? (file ?? "the config file") : `the plugin '${from}'`
}

/** A problem of one field: at its line, or at the line of the plugin that brings it. */
export const problemOf = (placed: PlacedModel, field: ConfigPath, message: string) => {
  const { model, at, plugin, adapterPlugins } = placed
  const [key, index, ...rest] = field
  const adapter = key === "adapters" ? model.adapters[Number(index)] : undefined
  const by = adapter && adapterPlugins?.get(adapter.id)
  // by its id: its place among all adapters of the model is written nowhere
  if (adapter && by !== undefined) {
    const named = [`its adapter '${adapterName(model.id, adapter)}'`, configPath(rest)]
    const what = named.filter((part) => part !== "").join(", ")
    return { path: ["plugins", by], message: `${what}: ${message}` }
  }
  return plugin === undefined
    ? { path: [...at, ...field], message }
    : {
        path: ["plugins", plugin],
        message: `its model '${model.id}', ${configPath(field)}: ${message}`,
      }
}

const checkModel = (
  placed: PlacedModel,
  backends: readonly Backend[],
): readonly (Problem | MissingProvider)[] => {
  const { model } = placed
  const backend = backends.find((b) => b.name === model.backend)
  const able = backends.filter((b) => b.tasks.includes(model.task)).map((b) => b.name)
  if (!backend?.tasks.includes(model.task)) {
    const why = backend
      ? `the backend '${model.backend}' can't serve the task '${model.task}'`
      : `no plugin here provides the backend '${model.backend}'`
    const problem = problemOf(
      placed,
      ["backend"],
      `${why}, so nothing can serve the model '${model.id}'`,
    )
    return [
      able.length > 0
        ? { ...problem, fix: `write ${able.map((n) => `'${n}'`).join(" or ")}.` }
        : { ...problem, token: Tokens.backends as Token<unknown> },
    ]
  }
  const wrong = backend.check(model.task, model.options)
  if (wrong === undefined) return []
  const message = `the backend '${backend.name}' refuses these options: ${wrong}`
  return [
    {
      ...problemOf(placed, ["options"], message),
      fix: "correct the options; the backend's README lists them.",
    },
  ]
}

const checkLimits = (placed: PlacedModel): readonly Problem[] => {
  const { id, task, limits } = placed.model
  return task === "chat" && limits.maxOutputTokens === 0
    ? [
        {
          ...problemOf(placed, ["limits"], `the chat model '${id}' needs maxOutputTokens`),
          fix: "add it: the largest max_tokens that a request may ask for.",
        },
      ]
    : []
}

export const checkSources = (
  { sources }: Pick<ModelConfig, "sources">,
  placed: PlacedModel,
  path: ConfigPath = [],
): readonly Problem[] =>
  sources.flatMap(({ url }, at) => {
    const parsed = parseSourceUrl(url)
    const field = [...path, "sources", at, "url"]
    return Result.isFailure(parsed)
      ? [
          {
            ...problemOf(placed, field, "this is no source that files can be pulled from"),
            fix: `${parsed.failure}.`,
          },
        ]
      : []
  })

/** What requests send as the adapter to have none. */
const noAdapter = "none"

/** One problem for the adapters of the model's own entry, and one for each that a plugin brings. */
const refuseAdapters = (placed: PlacedModel): readonly Problem[] => {
  const { model, adapterPlugins } = placed
  const message = `the model '${model.id}' has the task '${model.task}', and only chat, embed and image models take adapters`
  const brought = model.adapters.flatMap(({ id }, at) => (adapterPlugins?.has(id) ? [at] : []))
  return [
    ...(brought.length < model.adapters.length
      ? [{ ...problemOf(placed, ["adapters"], message), fix: "remove the adapters." }]
      : []),
    ...brought.map((at) => ({
      ...problemOf(placed, ["adapters", at], message),
      fix: `remove the plugin, which brings the adapter '${model.adapters[at]!.id}'.`,
    })),
  ]
}

/** An embedding model's adapter is the tower by which it takes images, which no text needs. */
const refuseIdleTower = (placed: PlacedModel): readonly Problem[] => {
  const { id, task, adapters, modalities } = placed.model
  if (task !== "embed" || adapters.length === 0 || modalities.includes("image")) return []
  const message = `the adapter of an embedding model is the vision tower by which it takes images, and '${id}' takes ${modalities.join(", ")}`
  return [
    {
      ...problemOf(placed, ["adapters", 0], message),
      fix: "add image to its modalities, or remove the adapter; a LoRA is for chat and image models.",
    },
  ]
}

const checkAdapters = (placed: PlacedModel, models: readonly PlacedModel[]): readonly Problem[] => {
  const { id, task, adapters } = placed.model
  if (task === "rerank" || task === "transcribe") return refuseAdapters(placed)
  const idle = refuseIdleTower(placed)
  return adapters.flatMap((adapter, at) => {
    const path = ["adapters", at]
    const name = adapterName(id, adapter)
    const other = models.find(({ model }) => model.id === name)
    const isTaken = other !== undefined || adapters.findIndex((own) => own.id === adapter.id) < at
    const twice = other
      ? `the name '${name}' is given to an adapter by ${placeOf(placed, adapter.id)} and to a model by ${placeOf(other)}`
      : `the name '${name}' is given twice`
    return [
      ...(at === 0 ? idle : []),
      ...(adapter.id === noAdapter
        ? [
            {
              ...problemOf(placed, [...path, "id"], `'${noAdapter}' asks for no adapter`),
              fix: "give the adapter another id.",
            },
          ]
        : []),
      ...(isTaken
        ? [
            {
              ...problemOf(placed, [...path, "id"], twice),
              fix: "give the adapter another id.",
            },
          ]
        : []),
      ...checkSources(adapter, placed, path),
    ]
  })
}

/** Checks each model against the backends, its limits and its sources. */
export const checkModels = (
  models: readonly PlacedModel[],
  backends: readonly Backend[],
): readonly (Problem | MissingProvider)[] =>
  models.flatMap((placed) => [
    ...checkModel(placed, backends),
    ...checkLimits(placed),
    ...checkSources(placed.model, placed),
    ...checkAdapters(placed, models),
  ])
