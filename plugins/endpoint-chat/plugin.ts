import { definePlugin } from "../../core/plugin.ts"
import { provide, resolve, resolveOptional, Tokens } from "../../core/tokens.ts"
import { makeChatEndpoint } from "./endpoint.ts"
import { makeSchemaCheckEndpoint } from "./schema-check-endpoint.ts"
import { ChatSettings } from "./settings.ts"

export const plugin = definePlugin<ChatSettings>({
  name: "endpoint-chat",
  api: 1,
  about: "POST /v1/chat/completions, whole or streamed, and POST /v1/schemas/check.",
  settings: ChatSettings,
  needs: [Tokens.catalogue, Tokens.clock, Tokens.ids, Tokens.outbound, Tokens.workers],
  optional: [Tokens.schemaChecker],
  provides: [Tokens.endpoints],
  create: (settings) => ({
    register: (container) => {
      const catalogue = resolve(container, Tokens.catalogue)
      const clock = resolve(container, Tokens.clock)
      const ids = resolve(container, Tokens.ids)
      const outbound = resolve(container, Tokens.outbound)
      const workers = resolve(container, Tokens.workers)
      const deps = { catalogue, clock, ids, outbound, workers, settings }
      provide(container, Tokens.endpoints, makeChatEndpoint(deps))
      provide(
        container,
        Tokens.endpoints,
        makeSchemaCheckEndpoint(() => resolveOptional(container, Tokens.schemaChecker)),
      )
    },
  }),
})
