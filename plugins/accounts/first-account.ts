import { Effect } from "effect"
import { type FirstAccount, PluginError } from "../../core/index.ts"
import {
  type FirstAccountDeps,
  type FirstAccountError,
  makeFirstAccount,
} from "./make-first-account.ts"
import { updateFirstAccount } from "./update-first-account.ts"

/** Makes the first account at the first boot; later boots apply what the operator changed. */
export const ensureFirstAccount = (
  deps: FirstAccountDeps,
): Effect.Effect<FirstAccount, FirstAccountError> =>
  Effect.gen(function* () {
    const before = yield* deps.accounts.first()
    const created = before ? undefined : yield* makeFirstAccount(deps)
    if (created) {
      deps.log.info("account.first_created", "the first account was made", {
        file: deps.credentials.path,
      })
      return { created }
    }
    const account = before ?? (yield* deps.accounts.first())
    if (!account)
      return yield* new PluginError({
        plugin: "accounts",
        message: "the first account can't be made: its e-mail address has another account",
      })
    yield* updateFirstAccount(deps, account)
    return { created: undefined }
  })
