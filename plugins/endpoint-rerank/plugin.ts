import { Schema } from "effect"
import { definePlugin } from "../../core/plugin.ts"
import { provide, resolve, Tokens } from "../../core/tokens.ts"
import { makeRerankEndpoint } from "./endpoint.ts"

export const plugin = definePlugin({
  name: "endpoint-rerank",
  api: 1,
  about: "POST /v1/rerank (and /v2/rerank, as Cohere's client has it).",
  settings: Schema.Struct({}),
  needs: [Tokens.catalogue, Tokens.ids],
  provides: [Tokens.endpoints],
  create: () => ({
    register: (container) => {
      const catalogue = resolve(container, Tokens.catalogue)
      const ids = resolve(container, Tokens.ids)
      provide(container, Tokens.endpoints, makeRerankEndpoint({ catalogue, ids }))
    },
  }),
})
