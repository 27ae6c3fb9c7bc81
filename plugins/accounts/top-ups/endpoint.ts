import { createHash } from "node:crypto"
import { Effect, Redacted, Schema } from "effect"
import {
  type ApiError,
  apiError,
  atMostCharacters,
  type Call,
  decodeBody,
  defineEndpoint,
  displayRupiah,
  type Endpoint,
  freePlan,
  isId,
  type Json,
  type Micros,
  optional,
  type PortError,
  parseRupiah,
  rupiahNumber,
  type Transaction,
  type WhenStarted,
} from "../../../core/index.ts"
import { maxBalanceMicros } from "../admin/grant.ts"
import type { AccountsDeps } from "../deps.ts"
import { parseEmail } from "../email.ts"
import type { AccountsTables, AccountTable } from "../tables.ts"
import { isSigned } from "./signature.ts"

const maxBodyBytes = 64 * 1024
const maxAmountIdr = 1e12

const TopUpBody = Schema.Struct({
  id: Schema.String.check(Schema.isPattern(/^[\x21-\x7e]{1,200}$/)).annotate({
    description: "The payment's id at the provider: a top-up with the same id counts once.",
    examples: ["pay_8231"],
  }),
  account: optional(Schema.String.check(atMostCharacters(100))).annotate({
    description: "The account's id; or give its `email`.",
  }),
  email: optional(Schema.String.check(atMostCharacters(320))),
  amount_idr: Schema.Finite.check(
    Schema.makeFilter(
      (idr: number) =>
        (/^\d{1,13}(\.\d{1,6})?$/.test(String(idr)) && idr > 0 && idr <= maxAmountIdr) ||
        `expected an amount in Rp above 0, with at most 6 decimals, up to ${maxAmountIdr}`,
    ),
  ),
}).annotate({ identifier: "TopUpRequest" })
type TopUpBody = typeof TopUpBody.Type

const TopUpReply = Schema.Struct({
  object: Schema.Literal("top_up"),
  id: Schema.String,
  account: Schema.String,
  amount_idr: Schema.Finite,
  balance_idr: Schema.Finite,
  already_booked: Schema.Boolean.annotate({
    description: "True when an earlier message with this id was booked: nothing was added now.",
  }),
}).annotate({ identifier: "TopUp" })

type Failure = ApiError | PortError

const unsigned = () =>
  apiError(
    "authentication_error",
    "The Svc-Signature header is missing, wrong or older than five minutes. It is t=<unix seconds>,v1=<hex of HMAC-SHA256 over '<t>.<body>'>, with the secret of the setting topUpSecret.",
  )

const parse = (bytes: Uint8Array): Effect.Effect<TopUpBody, ApiError> =>
  Effect.try({
    try: () => JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes)) as Json,
    catch: () => apiError("invalid_request_error", "The body is no JSON."),
  }).pipe(Effect.flatMap((json) => decodeBody(TopUpBody, json)))

/**
 * The account, locked until `tx` ends; deleted ones are nobody's. An address counts once it is
 * confirmed: anybody can sign up with it, and go on with one of their own.
 */
const payee = (
  { accounts }: AccountsDeps,
  { account, email }: TopUpBody,
  tx: Transaction,
): Effect.Effect<AccountTable, Failure> =>
  Effect.gen(function* () {
    if (!account === !email)
      return yield* apiError("invalid_request_error", "account: give either account or email", {
        param: "account",
      })
    const named = email && (yield* accounts.byEmail(parseEmail(email) ?? "", tx))
    const id = account || (named ? named.id : "")
    const row = isId(id) ? yield* accounts.lock(id, tx) : undefined
    if (row && !row.deleted_at && (account || row.verified_at)) return row
    const param = account ? "account" : "email"
    return yield* apiError("not_found", "There is no such account.", { param })
  })

/** Returns false when the id was booked before, with the same account and amount. */
const takeId = (
  { clock, database }: AccountsDeps,
  { id }: TopUpBody,
  account: string,
  amountMicros: Micros,
  tx: Transaction,
): Effect.Effect<boolean, Failure> =>
  Effect.gen(function* () {
    const rows = database.queries<AccountsTables>(tx)
    const row = { id, account_id: account, amount_micros: amountMicros }
    const isNew = yield* database.run(() =>
      rows
        .insertInto("accounts_top_up")
        .values({ ...row, created_at: new Date(clock.nowMs()) })
        .onConflict((conflict) => conflict.doNothing())
        .returning("id")
        .executeTakeFirst(),
    )
    if (isNew) return true
    const before = yield* database.run(() =>
      rows.selectFrom("accounts_top_up").selectAll().where("id", "=", id).executeTakeFirst(),
    )
    if (before?.account_id === account && BigInt(before.amount_micros) === amountMicros)
      return false
    return yield* apiError("conflict", "id: was booked with another account or amount", {
      param: "id",
    })
  })

const book = (deps: AccountsDeps, body: TopUpBody) =>
  deps.database.transaction((tx) =>
    Effect.gen(function* () {
      const { audit, billing } = deps
      const amountMicros = parseRupiah(String(body.amount_idr))
      const { id: account } = yield* payee(deps, body, tx)
      const isNew = yield* takeId(deps, body, account, amountMicros, tx)
      const before = yield* billing.balance(account, tx)
      if (isNew && before.balanceMicros + amountMicros > maxBalanceMicros)
        return yield* apiError(
          "conflict",
          `A balance can't be above ${displayRupiah(maxBalanceMicros)}.`,
          { param: "amount_idr" },
        )
      if (isNew) {
        const entry = `topup_${createHash("sha256").update(body.id).digest("hex").slice(0, 32)}`
        const reason = `top-up ${body.id}`
        yield* billing
          .adjust({ id: entry, account, amountMicros, reason }, tx)
          .pipe(Effect.catchTag("BalanceTooLow", Effect.die))
        yield* audit.record(
          {
            actor: "payments",
            action: "account.top_up",
            target: account,
            after: { id: body.id, amount_idr: body.amount_idr, entry },
          },
          tx,
        )
      }
      const { balanceMicros } = yield* billing.balance(account, tx)
      const shown = { object: "top_up", id: body.id, account, amount_idr: body.amount_idr }
      return {
        status: 200,
        json: { ...shown, balance_idr: rupiahNumber(balanceMicros), already_booked: !isNew },
      }
    }),
  )

const topUp = (deps: AccountsDeps, { body, client }: Call<Uint8Array>) =>
  Effect.gen(function* () {
    const secret = Redacted.value(deps.settings.topUpSecret)
    if (secret === "") return yield* apiError("not_found", "This server takes no top-ups.")
    if (!isSigned(client?.signature ?? "", body, secret, deps.clock.nowMs()))
      return yield* unsigned()
    return yield* book(deps, yield* parse(body))
  })

/** What a payment provider, or the operator's bridge to one, calls when somebody has paid. */
export const topUpEndpoint = (started: WhenStarted<AccountsDeps>): Endpoint =>
  defineEndpoint<Uint8Array>({
    id: "hooks.top-up",
    summary:
      "Books a payment: a JSON body (TopUpRequest), signed in the `Svc-Signature` header as webhooks of this server are. Idempotent by `id`.",
    method: "POST",
    path: "/hooks/top-ups",
    access: "public",
    body: "bytes",
    form: TopUpBody,
    maxBodyBytes,
    reply: TopUpReply,
    plan: (call) => Effect.map(started, (deps) => freePlan(topUp(deps, call))),
  })
