import { Effect, Exit, Schema, Scope } from "effect"
import { expect, vi } from "vitest"
import {
  type ApiError,
  type Call,
  type Caller,
  defineEndpoint,
  type Endpoint,
  errorBody,
  freePlan,
  isApiError,
  type Json,
  makeIds,
  type Strings,
  statusOf,
} from "../../../core/index.ts"
import { makeSecrets } from "../../../runtime/services/secrets.ts"
import { routeOf } from "../../../testing/api.ts"
import { callPathFixture, fakeBilling, fakeMailer, fakeSigner } from "../../../testing/index.ts"
import { openTestDatabase } from "../../../testing/postgres.ts"
import { adminEndpoints } from "../admin/endpoints.ts"
import type { AccountsDeps } from "../deps.ts"
import { makeIdentity } from "../identity.ts"
import { keyEndpoints } from "../keys/endpoints.ts"
import { makeAccountsDeps } from "../make-deps.ts"
import { sessionEndpoints } from "../sessions/endpoints.ts"
import { Settings } from "../settings.ts"
import { type Fixture, openFixture } from "./fixture.ts"

export interface Asking {
  readonly token?: string
  readonly address?: string
  readonly languages?: string
  readonly signature?: string
  readonly agent?: string
}

export interface Answered {
  readonly status: number
  readonly headers: Strings
  // biome-ignore lint/suspicious/noExplicitAny: tests look into replies of many shapes
  readonly json: any
}

const keyed = (method: Endpoint["method"]): Endpoint =>
  defineEndpoint({
    id: `files.${method.toLowerCase()}`,
    summary: "",
    method,
    path: "/v1/files",
    access: "key",
    body: "none",
    maxBodyBytes: 0,
    plan: () => Effect.succeed(freePlan(Effect.succeed({ status: 200, json: {} }))),
  })

/** What keys of the deployment may call. */
const ends = [keyed("GET"), keyed("POST"), keyed("PATCH"), keyed("DELETE")]

/**
 * The whole plugin without HTTP: real database, real call path, and fakes for billing, signer and
 * mailer.
 */
export const openSessionFixture = async (input: Json = {}) => {
  const test = await openTestDatabase()
  const base = await openFixture(test)
  const scope = Scope.makeUnsafe()
  const mailer = fakeMailer()
  const billing = fakeBilling(base.clock)
  const signer = fakeSigner()
  const start = async (database: AccountsDeps["database"]): Promise<AccountsDeps> => {
    const deployment = {
      name: "test",
      dataDir: base.dataDir,
      modelsDir: base.dataDir,
      baseUrl: "https://rakit.example",
      mode: "server",
    } as const
    const settings = Schema.decodeUnknownSync(Settings)(input)
    const parts = {
      database,
      billing,
      signer,
      secrets: makeSecrets("test"),
      mailer,
      clock: base.clock,
      ids: makeIds(base.clock.nowMs),
      log: base.log,
      deployment,
      settings,
      endpoints: () => ends,
      models: () => ["svc-lyt", "svc-gt"],
    }
    return Effect.runPromise(makeAccountsDeps(parts).pipe(Scope.provide(scope)))
  }
  const askOf = (deps: AccountsDeps) => {
    const endpoints = [
      ...sessionEndpoints(Effect.succeed(deps)),
      ...keyEndpoints(Effect.succeed(deps)),
      ...adminEndpoints(Effect.succeed(deps)),
      ...ends,
    ]
    const identity = makeIdentity(deps.keys, { note: () => {} }, deps.clock)
    const callPath = callPathFixture()
    return async (
      method: Endpoint["method"],
      path: string,
      body?: Json,
      { token, address = "192.0.2.1", languages, signature, agent }: Asking = {},
    ): Promise<Answered> => {
      const { endpoint, params, query } = routeOf(endpoints, `${method} ${path}`)
      const signedIn: Caller | Answered | undefined =
        endpoint.access === "public"
          ? undefined
          : await Effect.runPromise(
              (endpoint.access === "key" ? identity : deps.sessions).authenticate(token ?? "").pipe(
                Effect.catchIf(isApiError, (error) =>
                  Effect.succeed({
                    status: statusOf(error),
                    headers: {},
                    json: errorBody(error),
                  }),
                ),
              ),
            )
      if (signedIn && "json" in signedIn) return signedIn
      return callPath.ask(endpoint, body, {
        ...{ params, query },
        caller: signedIn,
        client: { address, languages, signature, agent },
      })
    }
  }
  const deps = await start(base.database)
  return {
    ...base,
    deps,
    mailer,
    billing,
    signer,
    ask: askOf(deps),
    /** Resolves when all background work is done. */
    idle: () => vi.waitFor(() => expect(deps.background.pending()).toBe(0)),
    billingOf: (account: string) => Effect.runPromise(billing.balance(account)),
    /** The error of a public POST, with its headers. */
    failureOf: (path: string, body: Json): Promise<ApiError> => {
      const { endpoint } = routeOf(sessionEndpoints(Effect.succeed(deps)), `POST ${path}`)
      const plan = endpoint.plan({ body, client: { address: "192.0.2.1" } } as Call<Json>)
      const run = Effect.flatMap(plan, (made) =>
        Effect.mapError(made.run, (error) => {
          if (isApiError(error)) return error
          throw error
        }),
      )
      return Effect.runPromise(Effect.scoped(Effect.flip(run)))
    },
    /** Another server of the same deployment. */
    startAgain: async () => {
      const again = await start(await test.openAgain())
      return { deps: again, ask: askOf(again) }
    },
    /** The newest token that was mailed to the address. */
    mailedToken: (to: string, purpose: "verify" | "reset" | "email"): string => {
      const texts = mailer.sent
        .filter((mail) => mail.to === to)
        .map((mail) => new RegExp(`#${purpose}=([\\w-]{43})`).exec(mail.text)?.[1])
      return texts.findLast((found) => found !== undefined) ?? ""
    },
    auditOf: (target: string) =>
      base.database
        .queries<{
          accounts_audit: {
            action: string
            target: string
            actor: string
            before: Json
            after: Json
            seq: string
          }
        }>()
        .selectFrom("accounts_audit")
        .select(["actor", "action", "before", "after"])
        .where("target", "=", target)
        .orderBy("seq")
        .execute(),
    close: async () => {
      await Effect.runPromise(Scope.close(scope, Exit.void))
      await base.close()
    },
  }
}
export type SessionFixture = Awaited<ReturnType<typeof openSessionFixture>> & Pick<Fixture, "clock">
