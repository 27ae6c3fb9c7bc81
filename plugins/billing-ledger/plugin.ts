import { randomUUID } from "node:crypto"
import { join } from "node:path"
import { Effect } from "effect"
import {
  type Database,
  definePlugin,
  type Log,
  makeStarted,
  PluginError,
  provide,
  resolve,
  Tokens,
} from "../../core/index.ts"
import { ledgerCheck } from "./check/ledger-check.ts"
import { usageCheck } from "./check/usage-check.ts"
import { callsEndpoint } from "./dashboard/calls-endpoint.ts"
import { ledgerEndpoint } from "./dashboard/ledger-endpoint.ts"
import { revenueEndpoint } from "./dashboard/revenue-endpoint.ts"
import { errorsEndpoint, latencyEndpoint } from "./dashboard/timeline-endpoints.ts"
import { usageEndpoint } from "./dashboard/usage-endpoint.ts"
import type { LedgerDeps } from "./deps.ts"
import { makeLedger } from "./ledger.ts"
import { makeLedgerBilling } from "./ledger-billing.ts"
import { migrations } from "./migrations.ts"
import { keyReceiptEndpoint, sessionReceiptEndpoint } from "./receipts/endpoints.ts"
import { makeReplica } from "./replica.ts"
import { Settings } from "./settings.ts"
import { makeSettlementJournal, type SettlementJournal } from "./settlement-journal.ts"
import { keepUp } from "./upkeep.ts"

/** Without it the server still runs: what the database can't take is then kept in memory only. */
const openJournal = (journal: SettlementJournal, log: Log) =>
  Effect.catch(journal.open, ({ message }) =>
    Effect.sync(() =>
      log.error("ledger.journal_unusable", "settlements can't be kept on the disk", {
        reason: message,
      }),
    ),
  )

const repliesAfterJournal = ({ replyAfter }: Settings, { isExclusive }: Database): boolean =>
  replyAfter === "journal" || (replyAfter === "auto" && isExclusive === true)

export const plugin = definePlugin({
  name: "billing-ledger",
  api: 1,
  about:
    "Limits and prepaid money in PostgreSQL: holds, settlements and a double-entry ledger, exact across replicas; usage, ledger and receipts.",
  settings: Settings,
  needs: [
    Tokens.database,
    Tokens.clock,
    Tokens.log,
    Tokens.deployment,
    Tokens.metrics,
    Tokens.signer,
  ],
  provides: [Tokens.billing, Tokens.ledger, Tokens.endpoints, Tokens.consistencyChecks],
  migrations,
  create: (settings) => {
    const started = makeStarted<LedgerDeps>()
    return {
      register: (container) => {
        for (const endpoint of [
          usageEndpoint(started.get),
          ledgerEndpoint(started.get),
          callsEndpoint(started.get),
          latencyEndpoint(started.get),
          errorsEndpoint(started.get),
          revenueEndpoint(started.get),
          keyReceiptEndpoint(started.get),
          sessionReceiptEndpoint(started.get),
        ])
          provide(container, Tokens.endpoints, endpoint)
      },
      start: (container) =>
        Effect.gen(function* () {
          const database = resolve(container, Tokens.database)
          const clock = resolve(container, Tokens.clock)
          const log = resolve(container, Tokens.log)
          const metrics = resolve(container, Tokens.metrics)
          const deployment = resolve(container, Tokens.deployment)
          const replica = randomUUID()
          const journal = makeSettlementJournal(join(deployment.dataDir, "settlements"), replica)
          const journalFirst =
            deployment.mode === "server" && repliesAfterJournal(settings, database)
          const parts = { database, clock, log, metrics, settings, replica, journal, journalFirst }
          const billing = makeLedgerBilling(parts)
          provide(container, Tokens.billing, billing)
          started.set({
            database,
            clock,
            log,
            signer: resolve(container, Tokens.signer),
            deployment,
            flushRefused: Effect.andThen(billing.drained, billing.flushRefused),
            drained: billing.drained,
          })
          provide(container, Tokens.ledger, makeLedger(database, clock, settings))
          for (const check of [ledgerCheck, usageCheck])
            provide(container, Tokens.consistencyChecks, check({ database, clock, ...settings }))
          if (deployment.mode !== "server") return
          yield* Effect.acquireRelease(openJournal(journal, log), () => journal.close)
          yield* keepUp(
            billing,
            makeReplica(database, clock, replica, settings.leaseMs),
            settings,
            log,
            metrics,
          )
        }).pipe(
          Effect.mapError(
            (cause) =>
              new PluginError({
                plugin: "billing-ledger",
                message: `the ledger can't start: ${cause.message}`,
                cause,
              }),
          ),
        ),
    }
  },
})
