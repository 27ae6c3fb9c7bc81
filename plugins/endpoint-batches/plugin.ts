import { Effect } from "effect"
import type { DependencyContainer } from "tsyringe"
import { definePlugin, provide, resolve, resolveAll, Tokens } from "../../core/index.ts"
import { batchEndpoints } from "./api/endpoints.ts"
import { batchCheck } from "./check/batch-check.ts"
import { partCheck } from "./check/part-check.ts"
import type { BatchHouse } from "./house.ts"
import { migrations } from "./migrations.ts"
import { limitsOf, Settings } from "./settings.ts"
import { makeCancels } from "./work/cancels.ts"
import { keepWorking } from "./work/keep-working.ts"

/** For `rakit batch run`, which needs neither this plugin's tables nor its routes. */
export { BatchFileRefused } from "./run-file/refused.ts"
export { type BatchFileSums, makeBatchRunner } from "./run-file/runner.ts"

// one for each container: several houses may live in a process
const houses = new WeakMap<DependencyContainer, BatchHouse>()

const targetsIn = (container: DependencyContainer): BatchHouse["targets"] =>
  new Map(
    resolveAll(container, Tokens.endpoints)
      .filter(({ batchable }) => batchable)
      .map((endpoint) => [endpoint.path, endpoint]),
  )

const houseOf = (container: DependencyContainer, settings: Settings): BatchHouse => ({
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
    Tokens.deployment,
  ],
  provides: [Tokens.endpoints, Tokens.consistencyChecks],
  migrations,
  register: (container) => {
    for (const endpoint of batchEndpoints(() => houses.get(container)))
      provide(container, Tokens.endpoints, endpoint)
  },
  start: (container, settings) =>
    Effect.gen(function* () {
      const house = houseOf(container, settings)
      houses.set(container, house)
      const ledger = () =>
        container.isRegistered(Tokens.ledger.key, true)
          ? resolve(container, Tokens.ledger)
          : undefined
      for (const check of [batchCheck({ ...house, ledger }), partCheck(house)])
        provide(container, Tokens.consistencyChecks, check)
      const { role, work } = resolve(container, Tokens.deployment)
      if (role === "serve" && work !== "api") yield* Effect.forkScoped(keepWorking(house))
    }),
})
