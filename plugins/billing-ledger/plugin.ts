import { randomUUID } from "node:crypto"
import { Effect } from "effect"
import { definePlugin, PluginError, provide, resolve, Tokens } from "../../core/index.ts"
import { makeLedgerBilling } from "./ledger-billing.ts"
import { migrations } from "./migrations.ts"
import { makeReplica } from "./replica.ts"
import { Settings } from "./settings.ts"
import { keepUp } from "./upkeep.ts"

export const plugin = definePlugin({
  name: "billing-ledger",
  api: 1,
  about: "Limits and prepaid money in PostgreSQL: holds, settlements and a double-entry ledger, exact across replicas.",
  settings: Settings,
  needs: [Tokens.database, Tokens.clock, Tokens.log, Tokens.deployment, Tokens.metrics],
  provides: [Tokens.billing],
  migrations,
  start: (container, settings) =>
    Effect.gen(function* () {
      const database = resolve(container, Tokens.database)
      const clock = resolve(container, Tokens.clock)
      const log = resolve(container, Tokens.log)
      const metrics = resolve(container, Tokens.metrics)
      const replica = randomUUID()
      const billing = makeLedgerBilling({ database, clock, log, metrics, settings, replica })
      provide(container, Tokens.billing, billing)
      if (resolve(container, Tokens.deployment).role !== "serve") return
      yield* keepUp(billing, makeReplica(database, clock, replica, settings.leaseMs), settings, log, metrics)
    }).pipe(Effect.mapError((cause) => new PluginError({ plugin: "billing-ledger", message: `the ledger can't start: ${cause.message}`, cause }))),
})
