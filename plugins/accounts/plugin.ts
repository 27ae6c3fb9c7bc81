import { Effect } from "effect"
import { type Deployment, definePlugin, type FirstAccount, PluginError, type PortError, provide, resolve, Tokens } from "../../core/index.ts"
import { makeAccountRows } from "./account-rows.ts"
import { credentialsFile } from "./credentials-file.ts"
import { ensureFirstAccount } from "./first-account.ts"
import { readGivenCredentials } from "./given-credentials.ts"
import { makeIdentity } from "./identity.ts"
import { makeKeyIssuer } from "./key-issuer.ts"
import { makeKeyRows } from "./key-rows.ts"
import { flushInBackground, makeLastUsed } from "./last-used.ts"
import type { FirstAccountParts } from "./make-first-account.ts"
import { migrations } from "./migrations.ts"
import { amountOf, limitsOf, Settings } from "./settings.ts"

const cantStart = (cause: PortError) => new PluginError({ plugin: "accounts", message: `the first account can't be read or made: ${cause.message}`, cause })

/** A CLI command beside the server must not take away the one moment when the credentials are shown. */
const firstAccountOf = (parts: FirstAccountParts, role: Deployment["role"]): Effect.Effect<FirstAccount, PluginError> =>
  role === "command" ? Effect.succeed({ created: undefined }) : ensureFirstAccount(parts).pipe(Effect.catchTag("PortError", (cause) => Effect.fail(cantStart(cause))))

export const plugin = definePlugin({
  name: "accounts",
  api: 1,
  about: "Accounts and API keys; makes the first account at the first boot.",
  settings: Settings,
  needs: [Tokens.database, Tokens.billing, Tokens.clock, Tokens.ids, Tokens.log, Tokens.deployment],
  provides: [Tokens.identity, Tokens.keyIssuer, Tokens.firstAccount],
  migrations,
  start: (container, settings) =>
    Effect.gen(function* () {
      const database = resolve(container, Tokens.database)
      const { baseUrl, dataDir, role } = resolve(container, Tokens.deployment)
      const clock = resolve(container, Tokens.clock)
      const log = resolve(container, Tokens.log)
      const keys = makeKeyRows(database)
      const parts: FirstAccountParts = {
        database,
        billing: resolve(container, Tokens.billing),
        accounts: makeAccountRows(database),
        keys,
        ids: resolve(container, Tokens.ids),
        clock,
        log,
        given: readGivenCredentials(settings),
        credentials: credentialsFile(dataDir),
        baseUrl: `${baseUrl}/v1`,
        freeCreditMicros: amountOf(settings.freeCreditIdr),
        limits: limitsOf(settings),
      }
      provide(container, Tokens.firstAccount, yield* firstAccountOf(parts, role))
      provide(container, Tokens.keyIssuer, makeKeyIssuer(parts))
      const lastUsed = makeLastUsed(keys, clock, log)
      yield* flushInBackground(lastUsed)
      provide(container, Tokens.identity, makeIdentity(keys, lastUsed, clock))
    }),
})
