import { Effect } from "effect"
import type { DependencyContainer } from "tsyringe"
import {
  definePlugin,
  makeStarted,
  provide,
  resolve,
  resolveAll,
  resolveOptional,
  Tokens,
} from "../../core/index.ts"
import { batchEndpoints } from "./api/endpoints.ts"
import { makeCancels } from "./cancels.ts"
import { batchCheck } from "./check/batch-check.ts"
import { partCheck } from "./check/part-check.ts"
import { command } from "./command.ts"
import type { BatchDeps } from "./deps.ts"
import { migrations } from "./migrations.ts"
import { limitsOf, Settings } from "./settings.ts"
import { keepMeasured } from "./work/batch-metrics.ts"
import { keepWorking } from "./work/worker.ts"

const targetsIn = (container: DependencyContainer): BatchDeps["targets"] =>
  new Map(
    resolveAll(container, Tokens.endpoints)
      .filter(({ batchable }) => batchable)
      .map((endpoint) => [endpoint.path, endpoint]),
  )

const depsOf = (container: DependencyContainer, settings: Settings): BatchDeps => ({
  database: resolve(container, Tokens.database),
  storage: resolve(container, Tokens.storage),
  files: resolve(container, Tokens.files),
  billing: resolve(container, Tokens.billing),
  identity: resolve(container, Tokens.identity),
  callPath: resolve(container, Tokens.callPath),
  catalogue: resolve(container, Tokens.catalogue),
  webhook: resolve(container, Tokens.webhook),
  clock: resolve(container, Tokens.clock),
  ids: resolve(container, Tokens.ids),
  log: resolve(container, Tokens.log).with({ plugin: "endpoint-batches" }),
  metrics: resolve(container, Tokens.metrics),
  targets: targetsIn(container),
  limits: limitsOf(settings),
  cancels: makeCancels(),
})

export const plugin = definePlugin<Settings>({
  name: "endpoint-batches",
  api: 1,
  about: "Batches: files of requests that run at half the price, with /v1/batches.",
  settings: Settings,
  needs: [
    Tokens.database,
    Tokens.storage,
    Tokens.files,
    Tokens.billing,
    Tokens.identity,
    Tokens.callPath,
    Tokens.catalogue,
    Tokens.webhook,
    Tokens.clock,
    Tokens.ids,
    Tokens.log,
    Tokens.metrics,
    Tokens.deployment,
  ],
  optional: [Tokens.ledger],
  provides: [Tokens.endpoints, Tokens.consistencyChecks],
  migrations,
  commands: [command],
  create: (settings) => {
    const started = makeStarted<BatchDeps>()
    return {
      register: (container) => {
        for (const endpoint of batchEndpoints(started.get))
          provide(container, Tokens.endpoints, endpoint)
      },
      start: (container) =>
        Effect.gen(function* () {
          const deps = depsOf(container, settings)
          started.set(deps)
          const ledger = () => resolveOptional(container, Tokens.ledger)
          for (const check of [batchCheck({ ...deps, ledger }), partCheck(deps)])
            provide(container, Tokens.consistencyChecks, check)
          const { mode, role } = resolve(container, Tokens.deployment)
          if (mode === "server") yield* keepMeasured(deps)
          if (mode === "server" && role !== "api") yield* Effect.forkScoped(keepWorking(deps))
        }),
    }
  },
})
