import { Effect } from "effect"
import { type FirstAccount, PluginError } from "../../core/index.ts"
import {
  type FirstAccountDeps,
  type FirstAccountError,
  makeFirstAccount,
} from "./make-first-account.ts"
import { updateFirstAccount } from "./update-first-account.ts"

/** Makes the first account at the first boot; at later ones takes up what the operator changed. */
export const ensureFirstAccount = (
  parts: FirstAccountDeps,
): Effect.Effect<FirstAccount, FirstAccountError> =>
  Effect.gen(function* () {
    const before = yield* parts.accounts.first()
    const created = before ? undefined : yield* makeFirstAccount(parts)
    if (created) {
      parts.log.info("account.first_created", "the first account was made", {
        file: parts.credentials.path,
      })
      return { created }
    }
    const account = before ?? (yield* parts.accounts.first())
    if (!account)
      return yield* new PluginError({
        plugin: "accounts",
        message: "the first account can't be made: its e-mail address has another account",
      })
    yield* updateFirstAccount(parts, account)
    return { created: undefined }
  })
