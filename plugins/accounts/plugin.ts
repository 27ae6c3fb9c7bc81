import { Effect } from "effect"
import {
  type Deployment,
  definePlugin,
  type FirstAccount,
  PluginError,
  type PortError,
  provide,
  resolve,
  resolveAll,
  Tokens,
} from "../../core/index.ts"
import { adminEndpoints } from "./admin/endpoints.ts"
import { credentialsFile } from "./credentials-file.ts"
import { ensureFirstAccount } from "./first-account.ts"
import { readGivenCredentials } from "./given-credentials.ts"
import type { AccountsHouse } from "./house.ts"
import { makeIdentity } from "./identity.ts"
import { makeKeyIssuer } from "./key-issuer.ts"
import { keyEndpoints } from "./keys/endpoints.ts"
import { flushInBackground, makeLastUsed } from "./last-used.ts"
import type { FirstAccountParts } from "./make-first-account.ts"
import { migrations } from "./migrations.ts"
import { sessionEndpoints } from "./sessions/endpoints.ts"
import { amountOf, limitsOf, Settings } from "./settings.ts"
import { startAccountsHouse } from "./start-house.ts"
import { keepSwept, sweepExpired } from "./sweeper.ts"

const cantStart = (cause: PortError) =>
  new PluginError({
    plugin: "accounts",
    message: `the first account can't be read or made: ${cause.message}`,
    cause,
  })

/** A CLI command beside the server must not take away the one moment when the credentials are shown. */
const firstAccountOf = (
  parts: FirstAccountParts,
  role: Deployment["role"],
): Effect.Effect<FirstAccount, PluginError> =>
  role === "command"
    ? Effect.succeed({ created: undefined })
    : ensureFirstAccount(parts).pipe(
        Effect.catchTag("PortError", (cause) => Effect.fail(cantStart(cause))),
      )

const firstAccountParts = (house: AccountsHouse): FirstAccountParts => ({
  ...house,
  given: readGivenCredentials(house.settings),
  credentials: credentialsFile(house.deployment.dataDir),
  baseUrl: `${house.deployment.baseUrl}/v1`,
  freeCreditMicros: amountOf(house.settings.freeCreditIdr),
  limits: limitsOf(house.settings),
  locale: house.settings.locale,
})

// one for each container: several houses may live in a process
const houses = new WeakMap<object, AccountsHouse>()

const houseOf = (container: object) => (): AccountsHouse => {
  const house = houses.get(container)
  if (!house) throw new Error("the accounts plugin has not started")
  return house
}

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
    Tokens.mailer,
    Tokens.clock,
    Tokens.ids,
    Tokens.log,
    Tokens.deployment,
  ],
  provides: [
    Tokens.identity,
    Tokens.sessions,
    Tokens.keyIssuer,
    Tokens.firstAccount,
    Tokens.endpoints,
  ],
  migrations,
  register: (container) => {
    const open = houseOf(container)
    for (const endpoint of [
      ...sessionEndpoints(open),
      ...keyEndpoints(open),
      ...adminEndpoints(open),
    ])
      provide(container, Tokens.endpoints, endpoint)
  },
  start: (container, settings) =>
    Effect.gen(function* () {
      const house = yield* startAccountsHouse({
        database: resolve(container, Tokens.database),
        billing: resolve(container, Tokens.billing),
        signer: resolve(container, Tokens.signer),
        mailer: resolve(container, Tokens.mailer),
        clock: resolve(container, Tokens.clock),
        ids: resolve(container, Tokens.ids),
        log: resolve(container, Tokens.log),
        deployment: resolve(container, Tokens.deployment),
        settings,
        endpoints: () => resolveAll(container, Tokens.endpoints),
      })
      houses.set(container, house)
      const parts = firstAccountParts(house)
      provide(container, Tokens.firstAccount, yield* firstAccountOf(parts, house.deployment.role))
      provide(container, Tokens.keyIssuer, makeKeyIssuer(house))
      const lastUsed = makeLastUsed(house.keys, house.clock, house.log)
      yield* flushInBackground(lastUsed)
      provide(
        container,
        Tokens.identity,
        makeIdentity(house.keys, lastUsed, house.clock, settings.testKeys),
      )
      provide(container, Tokens.sessions, house.sessions)
      if (house.deployment.role === "serve")
        yield* Effect.forkScoped(keepSwept(sweepExpired(house.database, house.clock), house.log))
    }),
})
