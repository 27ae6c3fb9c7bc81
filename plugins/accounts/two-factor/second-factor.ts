import { Effect } from "effect"
import { sql } from "kysely"
import { type ApiError, apiError, type Client, type PortError } from "../../../core/index.ts"
import type { AccountChanges } from "../account-rows.ts"
import type { AccountsDeps } from "../deps.ts"
import { codeLimits } from "../limits/limits.ts"
import { refuseOverLimit } from "../limits/refuse-over-limit.ts"
import type { AccountsTables, AccountTable } from "../tables.ts"
import { hashRecoveryCode, stepOf } from "./totp.ts"

/** What an account without a second factor has. */
export const withoutTwoFactors = {
  totp_secret: null,
  totp_since: null,
  totp_last_step: null,
  recovery_sha256: [],
} as const satisfies AccountChanges

export const usesTwoFactors = (row: Pick<AccountTable, "totp_since">): boolean =>
  row.totp_since !== null

/**
 * What a new password changes: a second factor that was begun, and not confirmed, may be somebody's
 * who knew the old one.
 */
export const withoutBegun = (row: Pick<AccountTable, "totp_since">): AccountChanges =>
  usesTwoFactors(row) ? {} : withoutTwoFactors

/** The secret that the row holds. One that was encrypted with another key can't be used. */
export const totpSecretOf = (
  { secrets }: AccountsDeps,
  { totp_secret }: AccountTable,
): string | undefined => (totp_secret === null ? undefined : secrets.decrypt(totp_secret))

/** Each step's code counts once, so that one that was overheard is worth nothing. */
const useStep = ({ database }: AccountsDeps, id: string, step: number) =>
  database.run(() =>
    database
      .queries<AccountsTables>()
      .updateTable("accounts_account")
      .set({ totp_last_step: String(step) })
      .where("id", "=", id)
      .where((is) =>
        is.or([is("totp_last_step", "is", null), is("totp_last_step", "<", String(step))]),
      )
      .returning("id")
      .executeTakeFirst(),
  )

const useRecoveryCode = ({ database }: AccountsDeps, id: string, code: string) => {
  const hash = hashRecoveryCode(code)
  return database.run(() =>
    database
      .queries<AccountsTables>()
      .updateTable("accounts_account")
      .set({ recovery_sha256: sql`array_remove(recovery_sha256, ${hash}::bytea)` })
      .where("id", "=", id)
      .where(sql<boolean>`${hash}::bytea = ANY(recovery_sha256)`)
      .returning("id")
      .executeTakeFirst(),
  )
}

/** Uses up a code of the authenticator app, or a recovery code; false when it is neither. */
const useCode = (
  deps: AccountsDeps,
  row: AccountTable,
  code: string,
): Effect.Effect<boolean, PortError> => {
  const plain = code.replace(/\s/g, "")
  const secret = totpSecretOf(deps, row)
  const step = secret === undefined ? undefined : stepOf(secret, plain, deps.clock.nowMs())
  const used =
    step === undefined ? useRecoveryCode(deps, row.id, code) : useStep(deps, row.id, step)
  return Effect.map(used, (found) => found !== undefined)
}

export const codeNeeded = () =>
  apiError("authentication_error", "code: the account asks for a code of its authenticator app", {
    param: "code",
  })

const tooMany = "Too many wrong codes. Try again later."

/** Uses the code up; fails with `wrong` when it is none. Wrong ones count as wrong passwords, too. */
export const checkCode = (
  deps: AccountsDeps,
  row: AccountTable,
  client: Client | undefined,
  code: string,
  wrong: "authentication_error" | "invalid_request_error",
): Effect.Effect<void, ApiError | PortError> =>
  Effect.gen(function* () {
    const limits = codeLimits(row, client)
    yield* refuseOverLimit(deps.limiter.peek(limits), tooMany)
    if (yield* useCode(deps, row, code)) return
    yield* refuseOverLimit(deps.limiter.take(limits), tooMany)
    const [actor, action] =
      wrong === "authentication_error" ? ["anonymous", "login.fail"] : [row.id, "code.fail"]
    yield* deps.audit.record({ actor, action, target: row.id })
    return yield* apiError(wrong, "code: is wrong, too old, or was used", { param: "code" })
  })
