import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect } from "effect"
import {
  type Billing,
  type Database,
  defaultLimits,
  type Micros,
  makeIds,
} from "../../../core/index.ts"
import { fakeClock, fakeLog } from "../../../testing/index.ts"
import { makeAccountRows } from "../account-rows.ts"
import { makeAudit } from "../audit/make-audit.ts"
import { credentialsFile } from "../credentials-file.ts"
import { makeKeyRows } from "../key-rows.ts"
import type { FirstAccountDeps } from "../make-first-account.ts"
import { migrations } from "../migrations.ts"
import type { AccountsTables } from "../tables.ts"

export interface Grants extends Pick<Billing, "adjust"> {
  readonly byId: ReadonlyMap<string, Micros>
}

/** Billing as these tests need it: only grants, idempotent by id. */
export const fakeGrants = (): Grants => {
  const byId = new Map<string, Micros>()
  return {
    byId,
    adjust: ({ id, amountMicros }) =>
      Effect.sync(() => void (byId.has(id) || byId.set(id, amountMicros))),
  }
}

/** An empty real database, a fake clock, and a folder for credentials.json. */
export const openFixture = async ({
  database,
  close,
}: {
  readonly database: Database
  close(): Promise<void>
}) => {
  const dataDir = await mkdtemp(join(tmpdir(), "rakit-accounts-"))
  await Effect.runPromise(database.migrate("accounts", migrations))
  const clock = fakeClock()
  const log = fakeLog()
  const grants = fakeGrants()
  const ids = makeIds(clock.nowMs)
  const parts: FirstAccountDeps = {
    database,
    billing: grants as unknown as Billing,
    accounts: makeAccountRows(database),
    keys: makeKeyRows(database),
    audit: makeAudit(database, clock, ids),
    ids,
    clock,
    log,
    given: { email: undefined, password: undefined, apiKey: undefined },
    credentials: credentialsFile(dataDir),
    baseUrl: "http://127.0.0.1:8080/v1",
    freeCreditMicros: 50_000_000_000n,
    limits: defaultLimits,
    locale: "en",
  }
  return {
    parts,
    clock,
    log,
    grants,
    dataDir,
    database,
    tables: database.queries<AccountsTables>(),
    empty: async () => {
      for (const table of [
        "accounts_attempt",
        "accounts_token",
        "accounts_key",
        "accounts_session",
      ] as const)
        await database.queries<AccountsTables>().deleteFrom(table).execute()
      await database.queries<AccountsTables>().deleteFrom("accounts_account").execute()
      await rm(parts.credentials.path, { force: true })
    },
    close: async () => {
      await close()
      await rm(dataDir, { recursive: true, force: true })
    },
  }
}
export type Fixture = Awaited<ReturnType<typeof openFixture>>
