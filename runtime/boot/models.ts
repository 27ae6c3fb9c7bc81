import { Result } from "effect"
import type { Backend } from "../../core/ports/model.ts"
import { parsePrice } from "../../core/pricing.ts"
import { adapterName, type ModelEntry } from "../../core/services/model-entry.ts"
import { type Token, Tokens } from "../../core/tokens.ts"
import type { Problem } from "../config/problems.ts"
import type { DeploymentConfig, ModelConfig } from "../config/schema.ts"
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

const checkModel = (
  model: ModelConfig,
  index: number,
  backends: readonly Backend[],
): readonly (Problem | MissingProvider)[] => {
  const backend = backends.find((b) => b.name === model.backend)
  const able = backends.filter((b) => b.tasks.includes(model.task)).map((b) => b.name)
  if (!backend?.tasks.includes(model.task)) {
    const why = backend
      ? `the backend '${model.backend}' can't serve the task '${model.task}'`
      : `no plugin here provides the backend '${model.backend}'`
    const problem = {
      path: ["models", index, "backend"],
      message: `${why}, so nothing can serve the model '${model.id}'`,
    }
    return [
      able.length > 0
        ? { ...problem, fix: `write ${able.map((n) => `'${n}'`).join(" or ")}.` }
        : { ...problem, token: Tokens.backends as Token<unknown> },
    ]
  }
  const wrong = backend.check(model.task, model.options)
  return wrong === undefined
    ? []
    : [
        {
          path: ["models", index, "options"],
          message: `the backend '${backend.name}' refuses these options: ${wrong}`,
          fix: "correct the options; the backend's README lists them.",
        },
      ]
}

/** Runs before the catalogue is made, which throws on invalid prices. */
export const checkPrices = (deployment: DeploymentConfig): readonly Problem[] =>
  deployment.models.flatMap((model, index) => {
    try {
      parsePrice(model.price)
      return []
    } catch (cause) {
      return [
        {
          path: ["models", index, "price"],
          message: (cause as Error).message,
          fix: "write amounts in rupiah with at most 6 decimals.",
        },
      ]
    }
  })

const checkLimits = ({ limits, task, id }: ModelConfig, index: number): readonly Problem[] =>
  task === "chat" && limits.maxOutputTokens === 0
    ? [
        {
          path: ["models", index, "limits"],
          message: `the chat model '${id}' needs maxOutputTokens`,
          fix: "add it: the largest max_tokens that a request may ask for.",
        },
      ]
    : []

const checkSources = (
  { sources }: Pick<ModelConfig, "sources">,
  path: Problem["path"],
): readonly Problem[] =>
  sources.flatMap(({ url }, at) => {
    const parsed = parseSourceUrl(url)
    return Result.isFailure(parsed)
      ? [
          {
            path: [...path, "sources", at, "url"],
            message: "this is no source that files can be pulled from",
            fix: `${parsed.failure}.`,
          },
        ]
      : []
  })

const checkAdapters = (
  { id, task, adapters }: ModelConfig,
  index: number,
  models: readonly ModelConfig[],
): readonly Problem[] => {
  if (task !== "chat" && adapters.length > 0)
    return [
      {
        path: ["models", index, "adapters"],
        message: `the model '${id}' has the task '${task}', and only chat models take adapters`,
        fix: "remove the adapters.",
      },
    ]
  return adapters.flatMap((adapter, at) => {
    const path = ["models", index, "adapters", at]
    const name = adapterName(id, adapter)
    const isTaken =
      adapters.findIndex((other) => other.id === adapter.id) < at ||
      models.some((other) => other.id === name)
    return [
      ...(isTaken
        ? [
            {
              path: [...path, "id"],
              message: `the name '${name}' is given twice`,
              fix: "give the adapter another id.",
            },
          ]
        : []),
      ...checkSources(adapter, path),
    ]
  })
}

/** Checks each model against the backends, its limits and its sources. */
export const checkModels = (
  deployment: DeploymentConfig,
  backends: readonly Backend[],
): readonly (Problem | MissingProvider)[] =>
  deployment.models.flatMap((model, index) => [
    ...checkModel(model, index, backends),
    ...checkLimits(model, index),
    ...checkSources(model, ["models", index]),
    ...checkAdapters(model, index, deployment.models),
  ])
