import { Schema } from "effect"
import { definePlugin } from "../../core/plugin.ts"
import { provide, resolve, resolveOptional, Tokens } from "../../core/tokens.ts"
import { makeChatEndpoint } from "./endpoint.ts"
import { makeSchemaCheckEndpoint } from "./schema-check-endpoint.ts"

export const plugin = definePlugin({
  name: "endpoint-chat",
  api: 1,
  about: "POST /v1/chat/completions, whole or streamed, and POST /v1/schemas/check.",
  settings: Schema.Struct({}),
  needs: [Tokens.catalogue, Tokens.clock, Tokens.ids, Tokens.outbound],
  optional: [Tokens.schemaChecker],
  provides: [Tokens.endpoints],
  create: () => ({
    register: (container) => {
      const catalogue = resolve(container, Tokens.catalogue)
      const clock = resolve(container, Tokens.clock)
      const ids = resolve(container, Tokens.ids)
      const outbound = resolve(container, Tokens.outbound)
      provide(container, Tokens.endpoints, makeChatEndpoint({ catalogue, clock, ids, outbound }))
      provide(
        container,
        Tokens.endpoints,
        makeSchemaCheckEndpoint(() => resolveOptional(container, Tokens.schemaChecker)),
      )
    },
  }),
})
