import { Effect, Schema } from "effect"
import {
  apiError,
  type Caller,
  defineEndpoint,
  type Endpoint,
  freePlan,
  isId,
  listSchema,
  megabyte,
  toList,
  type WhenStarted,
} from "../../../core/index.ts"
import type { AccountsDeps } from "../deps.ts"
import { callerOf, sessionOf } from "../session-caller.ts"
import type { SessionTable } from "../tables.ts"
import { ownAccount } from "./show-account.ts"

const time = Schema.Int.annotate({ description: "Unix seconds." })

const SessionReply = Schema.Struct({
  id: Schema.String,
  object: Schema.Literal("session"),
  created_at: time,
  last_seen_at: Schema.Int.annotate({ description: "Unix seconds, exact to a minute." }),
  expires_at: time,
  browser: Schema.NullOr(Schema.String).annotate({ description: "As in `Firefox 128`." }),
  os: Schema.NullOr(Schema.String),
  address: Schema.NullOr(Schema.String).annotate({
    description: "The IP address where it began; null for anybody but the owner.",
  }),
  current: Schema.Boolean.annotate({ description: "It is the one that asks." }),
}).annotate({ identifier: "DashboardSession" })

const EndedSession = Schema.Struct({
  id: Schema.String,
  object: Schema.Literal("session"),
  deleted: Schema.Literal(true),
}).annotate({ identifier: "EndedSession" })

const seconds = (at: Date) => Math.floor(at.getTime() / 1000)

const toSession = (row: SessionTable, own: ReturnType<typeof sessionOf>) => ({
  id: row.id,
  object: "session",
  created_at: seconds(row.created_at),
  last_seen_at: seconds(row.last_seen_at),
  expires_at: seconds(row.expires_at),
  browser: row.browser,
  os: row.os,
  address: own?.actor === undefined ? row.address : null,
  current: row.id === own?.id,
})

const list = (started: WhenStarted<AccountsDeps>) =>
  defineEndpoint({
    id: "dashboard.sessions.list",
    summary: "The account's open sessions, the one that was seen last first.",
    method: "GET",
    path: "/dashboard/sessions",
    access: "session",
    body: "none",
    maxBodyBytes: 0,
    reply: listSchema(SessionReply, "SessionList"),
    plan: ({ caller }) =>
      Effect.map(started, (deps) =>
        freePlan(
          Effect.gen(function* () {
            const row = yield* ownAccount(deps, caller)
            const rows = yield* deps.sessionRows.list(row, new Date(deps.clock.nowMs()))
            const data = rows.map((one) => toSession(one, sessionOf(caller)))
            return { status: 200, json: toList(data, false) }
          }),
        ),
      ),
  })

/** `current` is the session that asks, for signing out. Uninterruptible, as the caches follow. */
const endOne = (deps: AccountsDeps, caller: Caller, wanted: string) =>
  Effect.gen(function* () {
    const own = caller.tenant.account
    const id = wanted === "current" ? (sessionOf(caller)?.id ?? "") : wanted
    const ended = isId(id)
      ? yield* deps.database.transaction((tx) =>
          Effect.tap(deps.sessionRows.end(own, id, tx), (ids) =>
            ids.includes(id)
              ? deps.audit.record(
                  {
                    actor: own,
                    action: "account.end_session",
                    target: own,
                    after: { session: id },
                  },
                  tx,
                )
              : Effect.void,
          ),
        )
      : []
    for (const session of ended) deps.keyChanges.announce({ session })
    if (!ended.includes(id)) return yield* apiError("not_found", "There is no such session.")
    return { status: 200, json: { id, object: "session", deleted: true } }
  }).pipe(Effect.uninterruptible)

const end = (started: WhenStarted<AccountsDeps>) =>
  defineEndpoint({
    id: "dashboard.sessions.end",
    summary: "Ends one session of the account; `current` is the one that asks.",
    method: "DELETE",
    path: "/dashboard/sessions/{id}",
    access: "session",
    body: "none",
    maxBodyBytes: megabyte,
    reply: EndedSession,
    plan: (call) =>
      Effect.map(Effect.all([started, callerOf(call)]), ([deps, caller]) =>
        freePlan(endOne(deps, caller, call.params.id ?? "")),
      ),
  })

/** The endpoints `/dashboard/sessions`. */
export const ownSessionEndpoints = (started: WhenStarted<AccountsDeps>): readonly Endpoint[] => [
  list(started),
  end(started),
]
