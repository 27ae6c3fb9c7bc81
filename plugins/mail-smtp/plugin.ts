import { join } from "node:path"
import { Effect, Queue, Redacted } from "effect"
import {
  type Deployment,
  definePlugin,
  type Log,
  provide,
  resolve,
  Tokens,
} from "../../core/index.ts"
import { makeAttempt } from "./attempt.ts"
import type { Delivery } from "./delivery.ts"
import { makeDispatcher } from "./dispatcher.ts"
import { folderDelivery, noDelivery } from "./folder-delivery.ts"
import { makeMailer } from "./mailer.ts"
import { migrations } from "./migrations.ts"
import { makeOutboxRows } from "./outbox-rows.ts"
import { Settings, senderOf } from "./settings.ts"
import { smtpDelivery } from "./smtp-delivery.ts"
import { parseSmtpUrl } from "./smtp-url.ts"
import { sweepHourly } from "./sweeper.ts"

const deliveryOf = (settings: Settings, { dataDir }: Deployment, log: Log): Delivery => {
  const server = parseSmtpUrl(Redacted.value(settings.url))
  if (server) return smtpDelivery(server, senderOf(settings))
  return process.env.NODE_ENV === "production"
    ? noDelivery(log)
    : folderDelivery(join(dataDir, "outbox"), senderOf(settings), log)
}

export const plugin = definePlugin<Settings>({
  name: "mail-smtp",
  api: 1,
  about:
    "Sends e-mail through an SMTP server, from an outbox in PostgreSQL; without one, to the log and a folder.",
  settings: Settings,
  needs: [
    Tokens.database,
    Tokens.clock,
    Tokens.log,
    Tokens.metrics,
    Tokens.secrets,
    Tokens.deployment,
  ],
  provides: [Tokens.mailer],
  migrations,
  create: (settings) => ({
    start: (container) =>
      Effect.gen(function* () {
        const deployment = resolve(container, Tokens.deployment)
        const log = resolve(container, Tokens.log).with({ plugin: "mail-smtp" })
        const secrets = resolve(container, Tokens.secrets)
        const metrics = resolve(container, Tokens.metrics)
        const rows = makeOutboxRows(
          resolve(container, Tokens.database),
          resolve(container, Tokens.clock),
          () => secrets.keyId,
        )
        const attempt = makeAttempt({
          rows,
          secrets,
          delivery: deliveryOf(settings, deployment, log),
          log,
          metrics,
          random: Math.random,
        })
        const dispatcher = makeDispatcher(yield* Queue.sliding<true>(1), rows, attempt, log)
        provide(container, Tokens.mailer, makeMailer(rows, secrets, dispatcher.wake))
        if (deployment.mode !== "server") return
        yield* dispatcher.run
        yield* sweepHourly(rows, log)
      }),
  }),
})
