import { Schema } from "effect"
import { definePlugin } from "../../core/plugin.ts"
import { provide, resolve, Tokens } from "../../core/tokens.ts"
import { makeModelEndpoint, makeModelsEndpoint } from "./endpoint.ts"

export const plugin = definePlugin({
  name: "endpoint-models",
  api: 1,
  about: "GET /v1/models and /v1/models/{id}: the public list.",
  settings: Schema.Struct({}),
  needs: [Tokens.catalogue, Tokens.clock],
  provides: [Tokens.endpoints],
  create: () => ({
    register: (container) => {
      const deps = {
        catalogue: resolve(container, Tokens.catalogue),
        clock: resolve(container, Tokens.clock),
      }
      provide(container, Tokens.endpoints, makeModelsEndpoint(deps))
      provide(container, Tokens.endpoints, makeModelEndpoint(deps))
    },
  }),
})
