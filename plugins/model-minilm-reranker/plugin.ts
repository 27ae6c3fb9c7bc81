import { fileURLToPath } from "node:url"
import { definePlugin } from "../../core/plugin.ts"
import { type ModelOffer, ModelOfferSettings } from "../../core/ports/model-offer.ts"
import { provide, Tokens } from "../../core/tokens.ts"

/** The folder of the weights; the compiled copy of this module has none beside it. */
const weights = fileURLToPath(
  new URL(
    import.meta.url.endsWith(".ts")
      ? "./weights/"
      : "../../../plugins/model-minilm-reranker/weights/",
    import.meta.url,
  ),
)

/** What an entry under `models` of a config file would say. */
const model: ModelOffer = {
  id: "svc-rerank",
  task: "rerank",
  tier: "reranker",
  description: "Reranking after vector search: a cross-encoder of 22 million weights",
  limits: { contextTokens: 2048 },
  capabilities: ["rerank"],
  price: { searchUnit: 2.5 },
  backend: "onnx",
  sources: [{ url: `file:${weights}` }],
}

export const plugin = definePlugin<typeof ModelOfferSettings.Type>({
  name: "model-minilm-reranker",
  api: 1,
  about: "The reranker 'svc-rerank', trained by this project: scores of a query's documents.",
  settings: ModelOfferSettings,
  needs: [],
  provides: [Tokens.models],
  create: (settings) => ({
    register: (container) => provide(container, Tokens.models, { ...model, ...settings }),
  }),
})
