import { definePlugin } from "../../core/plugin.ts"
import { provide, resolve, Tokens } from "../../core/tokens.ts"
import { makeEmbeddingsEndpoint } from "./endpoint.ts"
import { EmbeddingsSettings } from "./settings.ts"

export const plugin = definePlugin<EmbeddingsSettings>({
  name: "endpoint-embeddings",
  api: 1,
  about: "POST /v1/embeddings: texts and images as vectors of one space.",
  settings: EmbeddingsSettings,
  needs: [Tokens.catalogue],
  provides: [Tokens.endpoints],
  create: ({ maxInputs }) => ({
    register: (container) => {
      const catalogue = resolve(container, Tokens.catalogue)
      provide(container, Tokens.endpoints, makeEmbeddingsEndpoint({ catalogue, maxInputs }))
    },
  }),
})
