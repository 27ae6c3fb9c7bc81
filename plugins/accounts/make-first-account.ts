import { Effect } from "effect"
import {
  type Billing,
  type Clock,
  type Database,
  type FirstAccount,
  type Ids,
  type Limits,
  type Log,
  type Micros,
  type PluginError,
  type PortError,
  randomText,
} from "../../core/index.ts"
import type { AccountRows } from "./account-rows.ts"
import { makeApiKey, modeOf } from "./api-key.ts"
import type { Audit } from "./audit/audit.ts"
import type { CredentialsFile } from "./credentials-file.ts"
import { grantFreeCredit } from "./free-credit.ts"
import type { GivenCredentials } from "./given-credentials.ts"
import type { KeyRows } from "./key-rows.ts"
import { insertKeyUnlessThere } from "./keys/record-key.ts"
import type { Locale } from "./mails/locale.ts"
import { hashPassword } from "./passwords.ts"

export interface FirstAccountDeps {
  readonly database: Database
  readonly billing: Billing
  readonly accounts: AccountRows
  readonly keys: KeyRows
  readonly audit: Audit
  readonly ids: Ids
  readonly clock: Clock
  readonly log: Log
  readonly given: GivenCredentials
  readonly credentials: CredentialsFile
  /** The base URL of clients, which ends in `/v1`. */
  readonly baseUrl: string
  readonly freeCreditMicros: Micros
  readonly limits: Limits
  readonly locale: Locale
}

type Created = NonNullable<FirstAccount["created"]>
/** The actor of the audit log for the server itself. */
export const system = "system"
export type FirstAccountError = PortError | PluginError

/**
 * Makes account, key and free credit in one transaction, and writes the file just before the
 * commit. A crash leaves all of it, or nothing that counts (a file without its account is
 * overwritten by the next boot). Returns undefined when another server was first.
 */
export const makeFirstAccount = (
  deps: FirstAccountDeps,
): Effect.Effect<Created | undefined, FirstAccountError> =>
  Effect.gen(function* () {
    const { accounts, audit, credentials, given, ids, limits, locale } = deps
    const created: Created = {
      email: given.email ?? "admin@rakit.local",
      password: given.password ?? randomText(20),
      apiKey: given.apiKey ?? makeApiKey("live"),
    }
    const id = ids.make("acct_")
    const createdMs = deps.clock.nowMs()
    const at = new Date(createdMs)
    const password_hash = yield* hashPassword(created.password)
    return yield* deps.database.transaction((tx) =>
      Effect.gen(function* () {
        const row = {
          id,
          email: created.email,
          password_hash,
          role: "admin",
          is_first: true,
          verified_at: at,
          suspended_at: null,
          locale,
          created_at: at,
        } as const
        if (!(yield* accounts.insertFirst(row, tx))) return undefined
        yield* audit.record(
          {
            actor: system,
            action: "account.create",
            target: id,
            after: { email: created.email, role: row.role, locale },
          },
          tx,
        )
        const name = given.apiKey === undefined ? "First key" : "RAKIT_API_KEY"
        yield* insertKeyUnlessThere(
          deps,
          system,
          {
            id: ids.make("key_"),
            account: id,
            name,
            key: created.apiKey,
            mode: modeOf(created.apiKey),
            limits,
            createdMs,
          },
          tx,
        )
        yield* grantFreeCredit(deps.billing, id, deps.freeCreditMicros, tx)
        yield* credentials.write({
          base_url: deps.baseUrl,
          email: created.email,
          password: created.password,
          api_key: created.apiKey,
        })
        return created
      }),
    )
  })
