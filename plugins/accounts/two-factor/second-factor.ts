import { Effect } from "effect"
import { sql } from "kysely"
import { apiError, type PortError } from "../../../core/index.ts"
import type { AccountChanges } from "../account-rows.ts"
import type { AccountsDeps } from "../deps.ts"
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
export const useCode = (
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

export const codeWrong = (code: "authentication_error" | "invalid_request_error") =>
  apiError(code, "code: is wrong, too old, or was used", { param: "code" })
