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
export const lifeMs: Readonly<Record<MailPurpose, number>> = {
  verify: 48 * hourMs,
  reset: hourMs,
  email: 48 * hourMs,
}

/**
 * Tokens that prove control of an account's mailbox: 256 random bits for one purpose, of which only
 * the SHA-256 is stored.
 * States of a token: open -> used | voided (a newer one for the purpose was made) | expired.
 */
export interface MailTokens {
  /**
   * Makes a token; voids the older one for this purpose. The caller holds the lock of the account
   * in `tx`.
   */
  issue(
    account: string,
    purpose: MailPurpose,
    tx: Transaction,
    email?: string,
  ): Effect.Effect<string, PortError>
  /** Returns the new address that a token of the purpose `email` was mailed to. */
  addressOf(token: string): Effect.Effect<string | undefined, PortError>
  /** Deletes the account's tokens of these purposes, used ones, too. */
  forget(
    account: string,
    purposes: readonly MailPurpose[],
    tx: Transaction,
  ): Effect.Effect<void, PortError>
  /** Returns the account of an open token; otherwise fails as `refuse` does. */
  find(token: string, purpose: MailPurpose): Effect.Effect<string, ApiError | PortError>
  /**
   * Marks an open token as used and returns its account; undefined when it is not open. The caller
   * holds the lock of the account in `tx`.
   */
  use(
    token: string,
    purpose: MailPurpose,
    tx: Transaction,
  ): Effect.Effect<string | undefined, PortError>
  /**
   * Returns the account of a token that was used, or that a newer one replaced; undefined once it
   * is too old.
   */
  spent(token: string, purpose: MailPurpose): Effect.Effect<string | undefined, PortError>
  /**
   * Fails with the error for tokens that are not open. A known token is recorded in the audit log.
   */
  refuse(token: string, purpose: MailPurpose): Effect.Effect<never, ApiError | PortError>
}

/** One message, whatever the reason. */
const refusal = apiError(
  "invalid_request_error",
  "token: is unknown, was used, or is too old. Ask for a new mail.",
  { param: "token" },
)

const isToken = (text: string): boolean => /^[\w-]{43}$/.test(text)
const sha256Of = (token: string): Buffer => createHash("sha256").update(token).digest()

const reasonOf = (row: TokenTable, purpose: MailPurpose): string => {
  if (row.purpose !== purpose) return "other_purpose"
  if (row.used_at) return "used"
  return row.voided_at ? "voided" : "expired"
}

const isOpen = (row: TokenTable, purpose: MailPurpose, nowMs: number): boolean =>
  row.purpose === purpose && !row.used_at && !row.voided_at && row.expires_at.getTime() > nowMs

/** Queries on `accounts_token`. */
const makeTokenRows = (database: Database) => {
  const tokens = (tx?: Transaction) => database.queries<AccountsTables>(tx)
  const close = (changes: Updateable<TokenTable>, tx: Transaction) =>
    tokens(tx)
      .updateTable("accounts_token")
      .set(changes)
      .where("used_at", "is", null)
      .where("voided_at", "is", null)
  return {
    find: (token: string): Effect.Effect<TokenTable | undefined, PortError> =>
      isToken(token)
        ? database.run(() =>
            tokens()
              .selectFrom("accounts_token")
              .selectAll()
              .where("sha256", "=", sha256Of(token))
              .executeTakeFirst(),
          )
        : Effect.succeed(undefined),
    void: (account: string, purpose: MailPurpose, at: Date, tx: Transaction) =>
      database.run(() =>
        close({ voided_at: at }, tx)
          .where("account_id", "=", account)
          .where("purpose", "=", purpose)
          .execute(),
      ),
    forget: (account: string, purposes: readonly MailPurpose[], tx: Transaction) =>
      database.run(() =>
        tokens(tx)
          .deleteFrom("accounts_token")
          .where("account_id", "=", account)
          .where("purpose", "in", purposes)
          .execute(),
      ),
    insert: (row: TokenTable, tx: Transaction) =>
      database.run(() => tokens(tx).insertInto("accounts_token").values(row).execute()),
    /** Returns the account of the token; undefined when it was not open. */
    use: (token: string, purpose: MailPurpose, at: Date, tx: Transaction) =>
      Effect.map(
        database.run(() =>
          close({ used_at: at }, tx)
            .where("sha256", "=", sha256Of(token))
            .where("purpose", "=", purpose)
            .where("expires_at", ">", at)
            .returning("account_id")
            .executeTakeFirst(),
        ),
        (used) => used?.account_id,
      ),
  }
}

export const makeMailTokens = (
  database: Database,
  clock: Clock,
  audit: Audit,
  limiter: Limiter,
): MailTokens => {
  const rows = makeTokenRows(database)

  const issue: MailTokens["issue"] = (account_id, purpose, tx, email) =>
    Effect.gen(function* () {
      const token = randomBytes(32).toString("base64url")
      const nowMs = clock.nowMs()
      const at = new Date(nowMs)
      yield* rows.void(account_id, purpose, at, tx)
      const row = {
        sha256: sha256Of(token),
        account_id,
        purpose,
        email: email ?? null,
        created_at: at,
        expires_at: new Date(nowMs + lifeMs[purpose]),
        used_at: null,
        voided_at: null,
      }
      yield* rows.insert(row, tx)
      return token
    })

  const refuse: MailTokens["refuse"] = (token, purpose) =>
    Effect.gen(function* () {
      const known = yield* rows.find(token)
      if (known && (yield* limiter.take(auditLimits(known.account_id))) === 0)
        yield* audit.record({
          actor: "anonymous",
          action: "token.refuse",
          target: known.account_id,
          after: { purpose, reason: reasonOf(known, purpose) },
        })
      return yield* refusal
    })

  return {
    issue,
    refuse,
    addressOf: (token) => Effect.map(rows.find(token), (row) => row?.email ?? undefined),
    forget: (account, purposes, tx) => Effect.asVoid(rows.forget(account, purposes, tx)),
    use: (token, purpose, tx) =>
      Effect.suspend(() =>
        isToken(token)
          ? rows.use(token, purpose, new Date(clock.nowMs()), tx)
          : Effect.succeed(undefined),
      ),
    spent: (token, purpose) =>
      Effect.map(rows.find(token), (row) =>
        row?.purpose === purpose &&
        (row.used_at ?? row.voided_at) &&
        row.expires_at.getTime() > clock.nowMs()
          ? row.account_id
          : undefined,
      ),
    find: (token, purpose) =>
      Effect.flatMap(rows.find(token), (row) =>
        row && isOpen(row, purpose, clock.nowMs())
          ? Effect.succeed(row.account_id)
          : refuse(token, purpose),
      ),
  }
}
