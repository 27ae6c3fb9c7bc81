import { Effect, Result, Schema } from "effect"
import {
  apiError,
  type Client,
  type Clock,
  type Database,
  type Identity,
  type Ids,
  type Json,
  type Limits,
  type PortError,
  type Signer,
  type Transaction,
} from "../../../core/index.ts"
import type { AccountRows } from "../account-rows.ts"
import type { Audit } from "../audit/audit.ts"
import type { KeyChanges } from "../key-changes.ts"
import type { LastUsed } from "../last-used.ts"
import type { Limiter } from "../limits/limiter.ts"
import { auditLimits } from "../limits/limits.ts"
import { makeLookupCache } from "../lookup-cache.ts"
import { type SessionCaller, sessionOf } from "../session-caller.ts"
import type { AccountTable, SessionTable } from "../tables.ts"
import { agentOf } from "./agent.ts"
import type { SessionRows } from "./session-rows.ts"

const secondsOfADay = 86_400
const cache = { foundMs: 3_000, missingMs: 1_000, maxEntries: 10_000, maxLoads: 1_000 }
const maxCharacters = 2_000

/** A session as its owner gets it. */
export interface Begun {
  readonly token: string
  readonly expiresAt: number
}

/** An administrator who sees the account, in which of their own sessions, and until when (Unix s). */
export interface Viewer {
  readonly id: string
  readonly actor: string
  readonly parent: string
  readonly expiresAt: number
}

type Account = Pick<AccountTable, "id" | "session_epoch">

/**
 * Identifies dashboard sessions. A session is a signed token of 24 hours and a row, which its end
 * deletes; role and suspension come from the row of the account, not from the token.
 */
export interface Sessions extends Identity {
  begin(account: Account, client?: Client): Effect.Effect<Begun, PortError>
  /** Begins a session that may only read; the rows of both accounts are locked. */
  view(account: Account, viewer: Viewer, tx: Transaction): Effect.Effect<Begun, PortError>
}

export interface SessionDeps {
  readonly database: Database
  readonly rows: SessionRows
  readonly lastSeen: Pick<LastUsed, "note">
  readonly ids: Ids
  readonly signer: Signer
  readonly accounts: AccountRows
  readonly audit: Audit
  readonly limiter: Limiter
  readonly keyChanges: KeyChanges
  readonly clock: Clock
  /** The limits that a session shows; all but `bodyMb` apply to keys only. */
  readonly limits: Limits
}

/**
 * Times are Unix seconds. `sid`: absent in tokens of before there were rows. A view has its epoch
 * under another name: a server of that version would take it for a session that changes things.
 */
const Claims = Schema.Struct({
  sub: Schema.String,
  sid: Schema.optionalKey(Schema.String),
  iat: Schema.Int,
  exp: Schema.Int,
  epoch: Schema.optionalKey(Schema.Int),
  view_epoch: Schema.optionalKey(Schema.Int),
})
const decode = Schema.decodeUnknownResult(Claims)

const claimsOf = (payload: Json | undefined) => Result.getOrUndefined(decode(payload))

const over = () =>
  apiError("authentication_error", "The session is unknown or over. Sign in again.", {
    headers: { "www-authenticate": "Bearer" },
  })

const callerOf = (row: AccountTable, limits: Limits, session?: SessionTable): SessionCaller => {
  const actor = session?.actor_id ?? undefined
  const isBarred = row.suspended_at !== null || actor !== undefined
  return {
    tenant: { account: row.id, mode: "live" },
    scopes: [],
    role: isBarred ? "user" : row.role,
    limits,
    ...(isBarred && {
      readOnly: actor === undefined ? ("account_suspended" as const) : "read_only_session",
    }),
    ...(session && { session: { id: session.id, ...(actor !== undefined && { actor }) } }),
  }
}

const isAdmin = (row: AccountTable | undefined): boolean =>
  row?.role === "admin" && row.suspended_at === null

/** Rows and tokens of new sessions. */
const makeBeginning = ({
  clock,
  database,
  ids,
  keyChanges,
  rows,
  signer,
  accounts,
}: SessionDeps) => {
  const rowOf = ({ id, session_epoch }: Account, sid: string, expiresAt: number) => {
    const at = new Date(clock.nowMs())
    return {
      ...{ id: sid, account_id: id, epoch: session_epoch, created_at: at, last_seen_at: at },
      expires_at: new Date(expiresAt * 1000),
      ...{ browser: null, os: null, address: null, actor_id: null, parent_id: null },
    }
  }
  const tokenOf = (sub: string, sid: string, expiresAt: number, epoch: object) => {
    const iat = Math.floor(clock.nowMs() / 1000)
    const claims = { sub, sid, iat, exp: expiresAt, ...epoch }
    return Effect.map(signer.sign("session", claims), (token) => ({ token, expiresAt }))
  }
  const begin = (account: Account, client?: Client) =>
    Effect.gen(function* () {
      const sid = ids.make("sess_")
      const expiresAt = Math.floor(clock.nowMs() / 1000) + secondsOfADay
      const from = { ...agentOf(client?.agent), address: client?.address ?? null }
      const ended = yield* database.transaction((tx) =>
        Effect.andThen(
          accounts.lock(account.id, tx),
          rows.insert({ ...rowOf(account, sid, expiresAt), ...from }, tx),
        ),
      )
      for (const session of ended) keyChanges.announce({ session })
      return yield* tokenOf(account.id, sid, expiresAt, { epoch: account.session_epoch })
    })
  const view = (account: Account, { id, actor, parent, expiresAt }: Viewer, tx: Transaction) =>
    Effect.andThen(
      rows.insert({ ...rowOf(account, id, expiresAt), actor_id: actor, parent_id: parent }, tx),
      tokenOf(account.id, id, expiresAt, { view_epoch: account.session_epoch }),
    )
  return { begin, view }
}

export const makeSessions = (deps: SessionDeps): Sessions => {
  const { accounts, audit, clock, keyChanges, lastSeen, limiter, limits, rows, signer } = deps
  const known = makeLookupCache({ load: (id) => accounts.byId(id), clock, ...cache })
  const open = makeLookupCache({ load: (id) => rows.open(id), clock, ...cache })
  keyChanges.onChange((change) => {
    if ("account" in change) {
      known.forget((row) => row.id === change.account)
      open.forget((row) => [row.account_id, row.actor_id].includes(change.account))
    } else if ("session" in change) open.forget((row) => row.id === change.session)
  })
  return {
    ...makeBeginning(deps),
    authenticate: (bearer) =>
      Effect.gen(function* () {
        const claims =
          bearer.length > maxCharacters
            ? undefined
            : claimsOf(yield* signer.verify("session", bearer))
        if (!claims || claims.exp * 1000 <= clock.nowMs()) return yield* over()
        const row = yield* known.find(claims.sub)
        if (!row || row.session_epoch !== (claims.epoch ?? claims.view_epoch)) return yield* over()
        if (claims.sid === undefined) return callerOf(row, limits)
        const session = yield* open.find(claims.sid)
        if (session?.account_id !== row.id) return yield* over()
        const { actor_id } = session
        if (actor_id !== null && !isAdmin(yield* known.find(actor_id))) return yield* over()
        lastSeen.note({ id: session.id, lastUsedMs: session.last_seen_at.getTime() })
        return callerOf(row, limits, session)
      }),
    // no work continues on behalf of a session
    resume: () => Effect.fail(over()),
    denied: (caller, endpoint) => {
      const actor = sessionOf(caller)?.actor ?? caller.tenant.account
      return Effect.flatMap(limiter.take(auditLimits(actor)), (waitMs) =>
        waitMs > 0 ? Effect.void : audit.record({ actor, action: "admin.deny", target: endpoint }),
      )
    },
  }
}
