import { createHash, randomBytes } from "node:crypto"
import { Effect } from "effect"
import type { Updateable } from "kysely"
import {
  type ApiError,
  apiError,
  type Clock,
  type Database,
  type PortError,
  type Transaction,
} from "../../../core/index.ts"
import type { Audit } from "../audit/audit.ts"
import type { Limiter } from "../limits/limiter.ts"
import { auditLimits } from "../limits/limits.ts"
import type { AccountsTables, TokenTable } from "../tables.ts"

export type MailPurpose = TokenTable["purpose"]

const hourMs = 3_600_000
export const lifeMs: Readonly<Record<MailPurpose, number>> = { verify: 48 * hourMs, reset: hourMs }

/**
 * What proves that somebody reads an account's mail: 256 random bits for one purpose, of which only the SHA-256 is stored.
 * States of a token: open -> used | voided (a newer one of the purpose was made) | expired (its time is over).
 */
export interface MailTokens {
  /** A new one; voids the older of this purpose. The caller holds the account's lock in `tx`. */
  issue(account: string, purpose: MailPurpose, tx: Transaction): Effect.Effect<string, PortError>
  /** Whose it is, while it is open; else fails as `refuse` does. */
  find(token: string, purpose: MailPurpose): Effect.Effect<string, ApiError | PortError>
  /** The same, once: it is used from then on. Undefined when it is not open. The caller holds the account's lock in `tx`. */
  use(
    token: string,
    purpose: MailPurpose,
    tx: Transaction,
  ): Effect.Effect<string | undefined, PortError>
  /** What to answer to a token that is not open. Leaves a trace when it was one of ours. */
  refuse(token: string, purpose: MailPurpose): Effect.Effect<never, ApiError | PortError>
}

/** One text, whatever is wrong with it. */
const refusal = apiError(
  "invalid_request_error",
  "token: is unknown, was used, or is too old. Ask for a new mail.",
  { param: "token" },
)

const isToken = (text: string): boolean => /^[\w-]{43}$/.test(text)
const sha256Of = (token: string): Buffer => createHash("sha256").update(token).digest()

const whyNot = (row: TokenTable, purpose: MailPurpose): string => {
  if (row.purpose !== purpose) return "other_purpose"
  if (row.used_at) return "used"
  return row.voided_at ? "voided" : "expired"
}

export const makeMailTokens = (
  database: Database,
  clock: Clock,
  audit: Audit,
  limiter: Limiter,
): MailTokens => {
  const tokens = (tx?: Transaction) => database.queries<AccountsTables>(tx)
  const close = (changes: Updateable<TokenTable>, tx: Transaction) =>
    tokens(tx)
      .updateTable("accounts_token")
      .set(changes)
      .where("used_at", "is", null)
      .where("voided_at", "is", null)
  const row = (token: string) =>
    isToken(token)
      ? database.run(() =>
          tokens()
            .selectFrom("accounts_token")
            .selectAll()
            .where("sha256", "=", sha256Of(token))
            .executeTakeFirst(),
        )
      : Effect.succeed<TokenTable | undefined>(undefined)

  const issue: MailTokens["issue"] = (account_id, purpose, tx) =>
    Effect.gen(function* () {
      const token = randomBytes(32).toString("base64url")
      const nowMs = clock.nowMs()
      const at = new Date(nowMs)
      yield* database.run(() =>
        close({ voided_at: at }, tx)
          .where("account_id", "=", account_id)
          .where("purpose", "=", purpose)
          .execute(),
      )
      const values = {
        sha256: sha256Of(token),
        account_id,
        purpose,
        created_at: at,
        expires_at: new Date(nowMs + lifeMs[purpose]),
        used_at: null,
        voided_at: null,
      }
      yield* database.run(() => tokens(tx).insertInto("accounts_token").values(values).execute())
      return token
    })

  const use: MailTokens["use"] = (token, purpose, tx) =>
    Effect.suspend(() => {
      if (!isToken(token)) return Effect.succeed(undefined)
      const at = new Date(clock.nowMs())
      const using = () =>
        close({ used_at: at }, tx)
          .where("sha256", "=", sha256Of(token))
          .where("purpose", "=", purpose)
          .where("expires_at", ">", at)
          .returning("account_id")
          .executeTakeFirst()
      return Effect.map(database.run(using), (used) => used?.account_id)
    })

  const refuse: MailTokens["refuse"] = (token, purpose) =>
    Effect.gen(function* () {
      const known = yield* row(token)
      if (known && (yield* limiter.take(auditLimits(known.account_id))) === 0)
        yield* audit.record({
          actor: "anonymous",
          action: "token.refuse",
          target: known.account_id,
          after: { purpose, reason: whyNot(known, purpose) },
        })
      return yield* refusal
    })

  const find: MailTokens["find"] = (token, purpose) =>
    Effect.flatMap(row(token), (found) => {
      const isOpen =
        found &&
        found.purpose === purpose &&
        !found.used_at &&
        !found.voided_at &&
        found.expires_at.getTime() > clock.nowMs()
      return isOpen ? Effect.succeed(found.account_id) : refuse(token, purpose)
    })

  return { issue, find, use, refuse }
}
