import { Effect, Exit, Schema, Scope } from "effect"
import {
  type Caller,
  defaultLimits,
  defineEndpoint,
  type Endpoint,
  isApiError,
  type Json,
  makeIds,
  makeStarted,
} from "../../../core/index.ts"
import { makeSecrets } from "../../../runtime/services/secrets.ts"
import { askerOf } from "../../../testing/api.ts"
import {
  type CallPathFixture,
  callPathFixture,
  fakeMailer,
  fakeSigner,
} from "../../../testing/index.ts"
import { openTestDatabase } from "../../../testing/postgres.ts"
import { adminEndpoints } from "../admin/endpoints.ts"
import type { AuditRow } from "../audit/audit-list.ts"
import type { AuditTables } from "../audit/make-audit.ts"
import type { AccountsDeps } from "../deps.ts"
import { makeIdentity } from "../identity.ts"
import { keyEndpoints } from "../keys/endpoints.ts"
import { makeAccountsDeps } from "../make-deps.ts"
import { migrations } from "../migrations.ts"
import { Settings } from "../settings.ts"
import type { AccountsTables } from "../tables.ts"

const keyed = (id: string) =>
  defineEndpoint({
    id,
    summary: id,
    method: "POST",
    path: `/v1/${id}`,
    access: "key",
    body: "none",
    maxBodyBytes: 0,
    plan: () =>
      Effect.succeed({ bound: {}, run: Effect.succeed({ status: 200, json: { said: id } }) }),
  })

/** Other endpoints of the deployment: two that keys can call, and one that they can't. */
const others: readonly Endpoint[] = [
  keyed("chat.completions"),
  keyed("embeddings.create"),
  { ...keyed("models.list"), access: "public" },
]

export interface Ask {
  readonly as: Caller
  readonly body?: Json
  readonly idempotencyKey?: string
}

const makeApiFixture = async (
  deps: AccountsDeps,
  fake: CallPathFixture,
  endpoints: readonly Endpoint[],
) => {
  const { ids, clock, database } = deps
  const tables = database.queries<AccountsTables & AuditTables>()
  const identity = makeIdentity(deps.keys, { note: () => {} }, clock, deps.settings.testKeys)
  const call = askerOf(endpoints, fake)
  const ask = (route: string, { as, body, idempotencyKey }: Ask) =>
    call(route, body, { caller: as, idempotencyKey })
  return {
    deps,
    fake,
    clock: fake.clock,
    tables,
    identity,
    ask,
    /** An account, and its session. */
    makeAccount: async (
      more: {
        readonly role?: "user" | "admin"
        readonly email?: string
        readonly verified?: boolean
      } = {},
    ): Promise<Caller> => {
      const id = ids.make("acct_")
      const at = new Date(clock.nowMs())
      const { role = "user", email = `${id.toLowerCase()}@example.com`, verified = true } = more
      await tables
        .insertInto("accounts_account")
        .values({
          id,
          email,
          password_hash: "-",
          role,
          is_first: false,
          verified_at: verified ? at : null,
          suspended_at: null,
          created_at: at,
        })
        .execute()
      return { tenant: { account: id, mode: "live" }, scopes: [], role, limits: defaultLimits }
    },
    /** The audit log, oldest first. */
    audit: async (where: Partial<Pick<AuditRow, "actor" | "target" | "action">> = {}) => {
      const rows = await tables.selectFrom("accounts_audit").selectAll().orderBy("seq").execute()
      return rows.filter((row) =>
        Object.entries(where).every(([name, value]) => row[name as "actor"] === value),
      )
    },
    /** Authenticates a key: returns its Caller, or the code of the refusal. */
    authenticate: (key: string) =>
      Effect.runPromise(
        identity
          .authenticate(key)
          .pipe(Effect.catch((error) => Effect.succeed(isApiError(error) ? error.code : error))),
      ),
  }
}

/**
 * The endpoints of keys and admins on a real database, behind the real call path, with the fake of
 * the billing port.
 */
export const openApiFixture = async (settings: Json = {}) => {
  const { database, close, openAgain } = await openTestDatabase()
  await Effect.runPromise(database.migrate("accounts", migrations))
  const fake = callPathFixture([], 0n)
  const scope = Scope.makeUnsafe()
  const started = makeStarted<AccountsDeps>()
  const endpoints = [...keyEndpoints(started.get), ...adminEndpoints(started.get), ...others]
  const deps = await Effect.runPromise(
    makeAccountsDeps({
      ...{
        database,
        billing: fake.billing,
        signer: fakeSigner(),
        secrets: makeSecrets("test"),
        mailer: fakeMailer(),
        clock: fake.clock,
        ids: makeIds(fake.clock.nowMs),
        log: fake.log,
      },
      deployment: {
        name: "test",
        dataDir: "/nonexistent",
        modelsDir: "/nonexistent",
        baseUrl: "http://localhost",
        mode: "server",
      },
      settings: Schema.decodeUnknownSync(Settings)(settings),
      endpoints: () => endpoints,
      models: () => ["svc-lyt", "svc-gt"],
    }).pipe(Scope.provide(scope)),
  )
  started.set(deps)
  return {
    ...(await makeApiFixture(deps, fake, endpoints)),
    openAgain,
    close: async () => {
      await Effect.runPromise(Scope.close(scope, Exit.void))
      await close()
    },
  }
}
export type ApiFixture = Awaited<ReturnType<typeof openApiFixture>>
