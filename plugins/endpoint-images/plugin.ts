import { Schema } from "effect"
import { definePlugin } from "../../core/plugin.ts"
import { provide, resolve, resolveOptional, Tokens } from "../../core/tokens.ts"
import { makeImageEndpoints } from "./endpoint.ts"

export const plugin = definePlugin({
  name: "endpoint-images",
  api: 1,
  about: "POST /v1/images/generations and /v1/images/edits, whole or streamed.",
  settings: Schema.Struct({}),
  needs: [Tokens.catalogue, Tokens.clock, Tokens.log, Tokens.metrics],
  optional: [Tokens.imageSafety],
  provides: [Tokens.endpoints],
  create: () => ({
    register: (container) => {
      const deps = {
        catalogue: resolve(container, Tokens.catalogue),
        clock: resolve(container, Tokens.clock),
        log: resolve(container, Tokens.log),
        metrics: resolve(container, Tokens.metrics),
        safety: () => resolveOptional(container, Tokens.imageSafety),
      }
      for (const endpoint of makeImageEndpoints(deps))
        provide(container, Tokens.endpoints, endpoint)
    },
  }),
})
