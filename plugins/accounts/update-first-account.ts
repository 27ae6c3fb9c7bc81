import { Effect } from "effect"
import { modeOf, sha256Of } from "./api-key.ts"
import { grantFreeCredit } from "./free-credit.ts"
import { insertKeyUnlessThere } from "./keys/record-key.ts"
import { type FirstAccountDeps, type FirstAccountError, system } from "./make-first-account.ts"
import { isPassword } from "./passwords.ts"
import type { AccountTable } from "./tables.ts"

const keyOf = (deps: FirstAccountDeps, apiKey: string) =>
  deps.keys.bySha256(sha256Of(apiKey).toString("hex"))

/** A RAKIT_API_KEY that is not stored yet becomes a key of the first account. */
const addConfiguredKey = (
  deps: FirstAccountDeps,
  account: AccountTable,
): Effect.Effect<void, FirstAccountError> =>
  Effect.gen(function* () {
    const { database, given, ids, limits, log } = deps
    if (given.apiKey === undefined) return
    const id = ids.make("key_")
    const key = {
      id,
      account: account.id,
      name: "RAKIT_API_KEY",
      key: given.apiKey,
      mode: modeOf(given.apiKey),
      limits,
      createdMs: deps.clock.nowMs(),
    }
    const isNew = yield* database.transaction((tx) => insertKeyUnlessThere(deps, system, key, tx))
    if (isNew)
      return log.info(
        "key.configured_added",
        "RAKIT_API_KEY is new, so it was added to the keys of the first account",
        {
          key_id: id,
        },
      )
    const known = yield* keyOf(deps, given.apiKey)
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

/**
 * Updates `base_url` of the file, as the port may have changed. A file that is missing, or has no
 * key of this deployment, is left alone.
 */
const refreshFile = (deps: FirstAccountDeps): Effect.Effect<void, FirstAccountError> =>
  Effect.gen(function* () {
    const { credentials, log, baseUrl: base_url } = deps
    const file = yield* credentials.read
    if (!file || file.base_url === base_url) return
    const key = yield* keyOf(deps, file.api_key)
    if (!key || key.revoked) return
    yield* credentials
      .write({ ...file, base_url })
      .pipe(
        Effect.catchTag("PluginError", (error) =>
          Effect.sync(() => log.warn("account.credentials_not_written", error.message)),
        ),
      )
  })

/** Runs at a boot that finds the first account. */
export const updateFirstAccount = (
  deps: FirstAccountDeps,
  account: AccountTable,
): Effect.Effect<void, FirstAccountError> =>
  Effect.gen(function* () {
    yield* addConfiguredKey(deps, account)
    yield* logIgnoredSettings(deps, account)
    // again: the billing plugin may differ from that of the first boot
    yield* grantFreeCredit(deps.billing, account.id, deps.freeCreditMicros)
    yield* refreshFile(deps)
  })
