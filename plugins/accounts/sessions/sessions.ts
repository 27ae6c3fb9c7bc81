import { Effect, Result, Schema } from "effect"
import {
  apiError,
  type Caller,
  type Clock,
  type Identity,
  type Json,
  type Limits,
  type PortError,
  type Signer,
} from "../../../core/index.ts"
import type { AccountRows } from "../account-rows.ts"
import type { Audit } from "../audit/audit.ts"
import type { KeyChanges } from "../key-changes.ts"
import type { Limiter } from "../limits/limiter.ts"
import { auditLimits } from "../limits/limits.ts"
import { makeLookupCache } from "../lookup-cache.ts"
import type { AccountTable } from "../tables.ts"

const secondsOfADay = 86_400
const cache = { foundMs: 3_000, missingMs: 1_000, maxEntries: 10_000, maxLoads: 1_000 }
const maxCharacters = 2_000

/**
 * Identifies dashboard sessions. A session is a signed token of 24 hours; role and suspension come
 * from the row of the account, not from the token.
 */
export interface Sessions extends Identity {
  begin(
    account: Pick<AccountTable, "id" | "session_epoch">,
  ): Effect.Effect<{ readonly token: string; readonly expiresAt: number }, PortError>
}

export interface SessionDeps {
  readonly signer: Signer
  readonly accounts: AccountRows
  readonly audit: Audit
  readonly limiter: Limiter
  readonly keyChanges: KeyChanges
  readonly clock: Clock
  /** The limits that a session shows; all but `bodyMb` apply to keys only. */
  readonly limits: Limits
}

/** Times are Unix seconds. */
const Claims = Schema.Struct({
  sub: Schema.String,
  iat: Schema.Int,
  exp: Schema.Int,
  epoch: Schema.Int,
})
const decode = Schema.decodeUnknownResult(Claims)

const claimsOf = (payload: Json | undefined) => Result.getOrUndefined(decode(payload))

const over = () =>
  apiError("authentication_error", "The session is unknown or over. Sign in again.", {
    headers: { "www-authenticate": "Bearer" },
  })

const callerOf = (row: AccountTable, limits: Limits): Caller => ({
  tenant: { account: row.id, mode: "live" },
  scopes: [],
  role: row.suspended_at ? "user" : row.role,
  limits,
  ...(row.suspended_at && { suspended: true }),
})

export const makeSessions = ({
  signer,
  accounts,
  audit,
  limiter,
  keyChanges,
  clock,
  limits,
}: SessionDeps): Sessions => {
  const known = makeLookupCache({ load: (id) => accounts.byId(id), clock, ...cache })
  keyChanges.onChange(
    (change) => "account" in change && known.forget((row) => row.id === change.account),
  )
  return {
    begin: ({ id, session_epoch }) => {
      const iat = Math.floor(clock.nowMs() / 1000)
      const expiresAt = iat + secondsOfADay
      return Effect.map(
        signer.sign("session", { sub: id, iat, exp: expiresAt, epoch: session_epoch }),
        (token) => ({ token, expiresAt }),
      )
    },
    authenticate: (bearer) =>
      Effect.gen(function* () {
        const claims =
          bearer.length > maxCharacters
            ? undefined
            : claimsOf(yield* signer.verify("session", bearer))
        if (!claims || claims.exp * 1000 <= clock.nowMs()) return yield* over()
        const row = yield* known.find(claims.sub)
        return row && row.session_epoch === claims.epoch ? callerOf(row, limits) : yield* over()
      }),
    // no work continues on behalf of a session
    resume: () => Effect.fail(over()),
    denied: ({ tenant }, endpoint) =>
      Effect.flatMap(limiter.take(auditLimits(tenant.account)), (waitMs) =>
        waitMs > 0
          ? Effect.void
          : audit.record({ actor: tenant.account, action: "admin.deny", target: endpoint }),
      ),
  }
}
