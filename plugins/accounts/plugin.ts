import { Effect, type Scope } from "effect"
import type { DependencyContainer } from "tsyringe"
import {
  type Deployment,
  definePlugin,
  type FirstAccount,
  makeStarted,
  PluginError,
  type PortError,
  provide,
  resolve,
  resolveAll,
  type Started,
  Tokens,
} from "../../core/index.ts"
import { adminEndpoints } from "./admin/endpoints.ts"
import { credentialsFile } from "./credentials-file.ts"
import type { AccountsDeps } from "./deps.ts"
import { ensureFirstAccount } from "./first-account.ts"
import { readGivenCredentials } from "./given-credentials.ts"
import { makeIdentity } from "./identity.ts"
import { makeKeyIssuer } from "./key-issuer.ts"
import { keyEndpoints } from "./keys/endpoints.ts"
import { flushInBackground, makeLastUsed } from "./last-used.ts"
import { keepMailing } from "./low-balance/watch.ts"
import { makeAccountsDeps } from "./make-deps.ts"
import type { FirstAccountDeps } from "./make-first-account.ts"
import { migrations } from "./migrations.ts"
import { sessionEndpoints } from "./sessions/endpoints.ts"
import { amountOf, limitsOf, Settings } from "./settings.ts"
import { keepSwept, sweepExpired } from "./sweeper.ts"

const cantStart = (cause: PortError) =>
  new PluginError({
    plugin: "accounts",
    message: `the first account can't be read or made: ${cause.message}`,
    cause,
  })

/** A CLI command does not make the account: only the server shows its credentials, once. */
const firstAccountOf = (
  parts: FirstAccountDeps,
  mode: Deployment["mode"],
): Effect.Effect<FirstAccount, PluginError> =>
  mode === "command"
    ? Effect.succeed({ created: undefined })
    : ensureFirstAccount(parts).pipe(
        Effect.catchTag("PortError", (cause) => Effect.fail(cantStart(cause))),
      )

const firstAccountParts = (deps: AccountsDeps): FirstAccountDeps => ({
  ...deps,
  given: readGivenCredentials(deps.settings),
  credentials: credentialsFile(deps.deployment.dataDir),
  baseUrl: `${deps.deployment.baseUrl}/v1`,
  freeCreditMicros: amountOf(deps.settings.freeCreditIdr),
  limits: limitsOf(deps.settings),
  locale: deps.settings.locale,
})

const sweepOf = ({ clock, database, sessionRows }: AccountsDeps) =>
  Effect.gen(function* () {
    const sessions = yield* sessionRows.sweep(new Date(clock.nowMs()))
    return sessions + (yield* sweepExpired(database, clock))
  })

const startAccounts = (
  container: DependencyContainer,
  settings: Settings,
  started: Started<AccountsDeps>,
): Effect.Effect<void, PluginError, Scope.Scope> =>
  Effect.gen(function* () {
    const deps = yield* makeAccountsDeps({
      database: resolve(container, Tokens.database),
      billing: resolve(container, Tokens.billing),
      signer: resolve(container, Tokens.signer),
      secrets: resolve(container, Tokens.secrets),
      mailer: resolve(container, Tokens.mailer),
      clock: resolve(container, Tokens.clock),
      ids: resolve(container, Tokens.ids),
      log: resolve(container, Tokens.log),
      deployment: resolve(container, Tokens.deployment),
      settings,
      endpoints: () => resolveAll(container, Tokens.endpoints),
      models: () => resolve(container, Tokens.catalogue).entries.map(({ id }) => id),
    })
    started.set(deps)
    const parts = firstAccountParts(deps)
    provide(container, Tokens.firstAccount, yield* firstAccountOf(parts, deps.deployment.mode))
    provide(container, Tokens.keyIssuer, makeKeyIssuer(deps))
    const lastUsed = makeLastUsed(deps.keys, deps.clock, deps.log)
    yield* flushInBackground(lastUsed)
    yield* flushInBackground(deps.lastSeen)
    provide(
      container,
      Tokens.identity,
      makeIdentity(deps.keys, lastUsed, deps.clock, settings.testKeys),
    )
    provide(container, Tokens.sessions, deps.sessions)
    if (deps.deployment.mode === "server") {
      yield* keepSwept(sweepOf(deps), deps.log)
      yield* keepMailing(deps)
    }
  })

export const plugin = definePlugin<Settings>({
  name: "accounts",
  api: 1,
  about:
    "Accounts with sign-up and sessions, and API keys; makes the first account at the first boot.",
  settings: Settings,
  needs: [
    Tokens.database,
    Tokens.billing,
    Tokens.signer,
    Tokens.secrets,
    Tokens.mailer,
    Tokens.clock,
    Tokens.ids,
    Tokens.log,
    Tokens.deployment,
    Tokens.catalogue,
  ],
  provides: [
    Tokens.identity,
    Tokens.sessions,
    Tokens.keyIssuer,
    Tokens.firstAccount,
    Tokens.endpoints,
  ],
  migrations,
  create: (settings) => {
    const started = makeStarted<AccountsDeps>()
    return {
      register: (container) => {
        for (const endpoint of [
          ...sessionEndpoints(started.get),
          ...keyEndpoints(started.get),
          ...adminEndpoints(started.get),
        ])
          provide(container, Tokens.endpoints, endpoint)
      },
      start: (container) => startAccounts(container, settings, started),
    }
  },
})
