import { Effect } from "effect"
import type { DependencyContainer } from "tsyringe"
import {
  definePlugin,
  type JobHandler,
  makeStarted,
  provide,
  resolve,
  Tokens,
} from "../../core/index.ts"
import { webhookEndpoints } from "./api/webhook-endpoints.ts"
import { deliveryCheck } from "./check.ts"
import { makeDeliveryHandler } from "./delivery/delivery-handler.ts"
import { makeEmitter } from "./delivery/emitter.ts"
import { attemptCounter } from "./delivery/record-attempt.ts"
import type { WebhookDeps } from "./deps.ts"
import { migrations } from "./rows/migrations.ts"
import { Settings } from "./settings.ts"
import { keepUp } from "./upkeep.ts"

const depsOf = (container: DependencyContainer, settings: Settings): WebhookDeps => ({
  database: resolve(container, Tokens.database),
  queue: resolve(container, Tokens.queue),
  clock: resolve(container, Tokens.clock),
  ids: resolve(container, Tokens.ids),
  log: resolve(container, Tokens.log).with({ plugin: "webhook-http" }),
  metrics: resolve(container, Tokens.metrics),
  outbound: resolve(container, Tokens.outbound),
  secrets: resolve(container, Tokens.secrets),
  settings,
  random: Math.random,
})

export const plugin = definePlugin<Settings>({
  name: "webhook-http",
  api: 1,
  about:
    "Signed calls to customers' https addresses, with retries and a log of deliveries; serves /v1/webhooks.",
  settings: Settings,
  needs: [
    Tokens.database,
    Tokens.queue,
    Tokens.clock,
    Tokens.ids,
    Tokens.log,
    Tokens.metrics,
    Tokens.outbound,
    Tokens.secrets,
    Tokens.deployment,
  ],
  provides: [Tokens.webhook, Tokens.endpoints, Tokens.jobHandlers, Tokens.consistencyChecks],
  migrations,
  create: (settings) => {
    const started = makeStarted<WebhookDeps>()
    return {
      register: (container) => {
        for (const endpoint of webhookEndpoints(started.get))
          provide(container, Tokens.endpoints, endpoint)
        provide(
          container,
          Tokens.jobHandlers,
          makeDeliveryHandler(started.get, settings) as JobHandler<never>,
        )
      },
      start: (container) =>
        Effect.gen(function* () {
          const deps = depsOf(container, settings)
          started.set(deps)
          attemptCounter(deps.metrics)
          provide(container, Tokens.webhook, makeEmitter(deps))
          provide(container, Tokens.consistencyChecks, deliveryCheck(deps))
          const { mode, role } = resolve(container, Tokens.deployment)
          if (mode === "server" && role !== "api") yield* keepUp(deps)
        }),
    }
  },
})
