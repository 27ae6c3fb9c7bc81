import { definePlugin } from "../../core/plugin.ts"
import { provide, resolve, Tokens } from "../../core/tokens.ts"
import { makeSchemaCheckEndpoint } from "./check-schema.ts"
import { makeChatEndpoint } from "./endpoint.ts"
import { Settings } from "./settings.ts"

export const plugin = definePlugin<Settings>({
  name: "endpoint-chat",
  api: 1,
  about: "POST /v1/chat/completions, whole or streamed, and POST /v1/schemas/check.",
  settings: Settings,
  needs: [Tokens.catalogue, Tokens.clock, Tokens.ids],
  provides: [Tokens.endpoints],
  register: (container) => {
    const catalogue = resolve(container, Tokens.catalogue)
    const clock = resolve(container, Tokens.clock)
    const ids = resolve(container, Tokens.ids)
    provide(container, Tokens.endpoints, makeChatEndpoint({ catalogue, clock, ids }))
    const checker = () =>
      container.isRegistered(Tokens.schemaChecker.key, true)
        ? resolve(container, Tokens.schemaChecker)
        : undefined
    provide(container, Tokens.endpoints, makeSchemaCheckEndpoint(checker))
  },
})
