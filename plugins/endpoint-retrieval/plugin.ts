import { Effect } from "effect"
import { definePlugin, makeStarted, resolve, Tokens } from "../../core/index.ts"
import type { RetrievalDeps } from "./deps.ts"
import { migrations } from "./migrations.ts"
import { Settings } from "./settings.ts"

export const plugin = definePlugin<Settings>({
  name: "endpoint-retrieval",
  api: 1,
  about: "Retrieval: knowledge files are read, divided, embedded and searched.",
  settings: Settings,
  needs: [Tokens.database, Tokens.clock, Tokens.log],
  provides: [],
  migrations,
  create: (settings) => {
    const started = makeStarted<RetrievalDeps>()
    return {
      start: (container) =>
        Effect.sync(() => {
          started.set({
            database: resolve(container, Tokens.database),
            clock: resolve(container, Tokens.clock),
            log: resolve(container, Tokens.log).with({ plugin: "endpoint-retrieval" }),
            settings,
          })
        }),
    }
  },
})
