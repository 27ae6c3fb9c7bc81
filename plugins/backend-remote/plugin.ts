import { Schema } from "effect"
import { definePlugin } from "../../core/plugin.ts"
import { provide, resolve, Tokens } from "../../core/tokens.ts"
import { makeRemoteBackend } from "./backend.ts"
import { makeUpstreamHealth } from "./health.ts"
import { entryOptions } from "./options.ts"
import type { RemoteServices } from "./remote-model.ts"
import { makeUpstreamMetrics } from "./upstream-metrics.ts"

export const plugin = definePlugin({
  name: "backend-remote",
  api: 1,
  about: "Serves models of OpenAI-compatible servers: vLLM, SGLang, TGI, llama.cpp, Ollama, Rakit.",
  settings: Schema.Struct({}),
  modelOptions: { remote: entryOptions },
  needs: [
    Tokens.clock,
    Tokens.log,
    Tokens.metrics,
    Tokens.catalogue,
    Tokens.workers,
    Tokens.outbound,
  ],
  provides: [Tokens.backends, Tokens.healthChecks],
  create: () => ({
    register: (container) => {
      const health = makeUpstreamHealth()
      const metricsOf = makeUpstreamMetrics(resolve(container, Tokens.metrics))
      let services: RemoteServices | undefined
      const openServices = (): RemoteServices => {
        services ??= {
          clock: resolve(container, Tokens.clock),
          log: resolve(container, Tokens.log),
          catalogue: resolve(container, Tokens.catalogue),
          workers: resolve(container, Tokens.workers),
          outbound: resolve(container, Tokens.outbound),
          metricsOf,
        }
        return services
      }
      provide(container, Tokens.backends, makeRemoteBackend({ health, services: openServices }))
      provide(container, Tokens.healthChecks, health.check)
    },
  }),
})
