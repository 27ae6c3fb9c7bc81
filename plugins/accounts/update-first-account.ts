import { Effect } from "effect"
import { modeOf, sha256Of } from "./api-key.ts"
import { grantFreeCredit } from "./free-credit.ts"
import { insertKeyUnlessThere } from "./keys/record-key.ts"
import { type FirstAccountDeps, type FirstAccountError, system } from "./make-first-account.ts"
import { isPassword } from "./passwords.ts"
import type { AccountTable } from "./tables.ts"

const keyOf = (parts: FirstAccountDeps, apiKey: string) =>
  parts.keys.bySha256(sha256Of(apiKey).toString("hex"))

/** A RAKIT_API_KEY that nobody knows yet becomes a key of the first account. */
const addConfiguredKey = (
  parts: FirstAccountDeps,
  account: AccountTable,
): Effect.Effect<void, FirstAccountError> =>
  Effect.gen(function* () {
    const { database, given, ids, limits, log } = parts
    if (given.apiKey === undefined) return
    const id = ids.make("key_")
    const key = {
      id,
      account: account.id,
      name: "RAKIT_API_KEY",
      key: given.apiKey,
      mode: modeOf(given.apiKey),
      limits,
      createdMs: parts.clock.nowMs(),
    }
    const isNew = yield* database.transaction((tx) => insertKeyUnlessThere(parts, system, key, tx))
    if (isNew)
      return log.info(
        "key.configured_added",
        "RAKIT_API_KEY is new, so it was added to the keys of the first account",
        {
          key_id: id,
        },
      )
    const known = yield* keyOf(parts, given.apiKey)
    if (known?.revoked)
      log.warn("key.configured_revoked", "RAKIT_API_KEY was revoked, and stays so; set another", {
        key_id: known.id,
      })
    else if (known && known.caller.tenant.account !== account.id)
      log.warn("key.configured_of_other", "RAKIT_API_KEY is a key of another account", {
        key_id: known.id,
      })
  })

const logIgnoredSettings = (
  { given, log }: FirstAccountDeps,
  account: AccountTable,
): Effect.Effect<void, FirstAccountError> =>
  Effect.gen(function* () {
    if (given.email !== undefined && given.email !== account.email)
      log.warn(
        "account.configured_email_ignored",
        "RAKIT_ADMIN_EMAIL is ignored: the first account exists, with another address",
      )
    if (given.password !== undefined && !(yield* isPassword(account.password_hash, given.password)))
      log.warn(
        "account.configured_password_ignored",
        "RAKIT_ADMIN_PASSWORD is ignored: the first account exists, with another password",
      )
  })

/** The port may have changed. A file that is lost, or holds no key of ours, is left alone. */
const refreshFile = (parts: FirstAccountDeps): Effect.Effect<void, FirstAccountError> =>
  Effect.gen(function* () {
    const { credentials, log, baseUrl: base_url } = parts
    const file = yield* credentials.read
    if (!file || file.base_url === base_url) return
    const key = yield* keyOf(parts, file.api_key)
    if (!key || key.revoked) return
    yield* credentials
      .write({ ...file, base_url })
      .pipe(
        Effect.catchTag("PluginError", (error) =>
          Effect.sync(() => log.warn("account.credentials_not_written", error.message)),
        ),
      )
  })

/** A boot that finds the first account. */
export const updateFirstAccount = (
  parts: FirstAccountDeps,
  account: AccountTable,
): Effect.Effect<void, FirstAccountError> =>
  Effect.gen(function* () {
    yield* addConfiguredKey(parts, account)
    yield* logIgnoredSettings(parts, account)
    // once more: another Billing may stand here than the one of the first boot
    yield* grantFreeCredit(parts.billing, account.id, parts.freeCreditMicros)
    yield* refreshFile(parts)
  })
