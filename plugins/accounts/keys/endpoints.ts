import { Effect } from "effect"
import {
  defineEndpoint,
  type Endpoint,
  firstOf,
  freePlan,
  megabyte,
  type Page,
  PageQuery,
  type PortError,
  placeOf,
  type Reply,
  toList,
  type WhenStarted,
} from "../../../core/index.ts"
import type { AccountsDeps } from "../deps.ts"
import { callerOf } from "../session-caller.ts"
import { changeKey, revokeKey } from "./change-key.ts"
import { createKey, createPlaygroundKey } from "./create-key.ts"
import { type KeyRow, makeKeyStore } from "./key-store.ts"
import { scopesOf } from "./scopes.ts"
import { secondsOrNull, toKey } from "./to-key.ts"
import {
  ChangeKey,
  CreateKey,
  KeyList,
  KeyReply,
  NewKeyReply,
  PlaygroundKeyReply,
  ScopeList,
} from "./wire.ts"

const common = { access: "session", maxBodyBytes: megabyte } as const

/** Headers of replies that show a key. */
const onlyOnce = { "cache-control": "no-store" }

const shown = (
  deps: AccountsDeps,
  rows: readonly KeyRow[],
): Effect.Effect<readonly KeyReply[], PortError> =>
  Effect.map(
    rows.length > 0
      ? deps.billing.spentThisMonth(rows.map(({ id }) => id))
      : Effect.succeed(new Map<string, bigint>()),
    (spent) => rows.map((row) => toKey(row, spent.get(row.id) ?? 0n)),
  )

const replyWith = (deps: AccountsDeps, row: KeyRow): Effect.Effect<Reply, PortError> =>
  Effect.map(shown(deps, [row]), ([json]) => ({ status: 200, json }))

/** A page of an account's keys, newest first. */
export const keyPage = (deps: AccountsDeps, account: string, wanted: Page) =>
  Effect.gen(function* () {
    const store = makeKeyStore(deps.database)
    const before = yield* placeOf(wanted.after, (id) => store.place(account, id))
    const { rows, hasMore } = firstOf(yield* store.list(account, wanted.limit + 1, before), wanted)
    return { status: 200, json: toList(yield* shown(deps, rows), hasMore) }
  })

const listKeys = (started: WhenStarted<AccountsDeps>) =>
  defineEndpoint({
    ...common,
    id: "dashboard.keys.list",
    summary: "The account's keys, newest first.",
    method: "GET",
    path: "/dashboard/keys",
    body: "none",
    reply: KeyList,
    query: PageQuery,
    plan: (call) =>
      Effect.map(Effect.all([started, callerOf(call)]), ([deps, caller]) =>
        freePlan(keyPage(deps, caller.tenant.account, call.query)),
      ),
  })

const create = (started: WhenStarted<AccountsDeps>) =>
  defineEndpoint({
    ...common,
    id: "dashboard.keys.create",
    summary: "Makes a key, and shows it this once.",
    method: "POST",
    path: "/dashboard/keys",
    body: CreateKey,
    reply: NewKeyReply,
    status: 201,
    creates: true,
    plan: (call) =>
      Effect.map(Effect.all([started, callerOf(call)]), ([deps, caller]) =>
        freePlan(
          // a key that has just been made has spent nothing
          Effect.map(createKey(deps, caller, call.body), ({ row, key }) => ({
            status: 201,
            headers: onlyOnce,
            json: { ...toKey(row, 0n), key },
          })),
        ),
      ),
  })

const change = (started: WhenStarted<AccountsDeps>) =>
  defineEndpoint({
    ...common,
    id: "dashboard.keys.update",
    summary: "Changes a key's name, limits or scopes; a part of them is enough.",
    method: "PATCH",
    path: "/dashboard/keys/{id}",
    body: ChangeKey,
    reply: KeyReply,
    plan: (call) =>
      Effect.map(Effect.all([started, callerOf(call)]), ([deps, caller]) =>
        freePlan(
          Effect.flatMap(changeKey(deps, caller, call.params.id ?? "", call.body), (row) =>
            replyWith(deps, row),
          ),
        ),
      ),
  })

const revoke = (started: WhenStarted<AccountsDeps>) =>
  defineEndpoint({
    ...common,
    id: "dashboard.keys.revoke",
    summary: "Revokes a key. Idempotent.",
    method: "DELETE",
    path: "/dashboard/keys/{id}",
    body: "none",
    reply: KeyReply,
    plan: (call) =>
      Effect.map(Effect.all([started, callerOf(call)]), ([deps, caller]) =>
        freePlan(
          Effect.flatMap(revokeKey(deps, caller, call.params.id ?? ""), (row) =>
            replyWith(deps, row),
          ),
        ),
      ),
  })

const playground = (started: WhenStarted<AccountsDeps>) =>
  defineEndpoint({
    ...common,
    id: "dashboard.playground_key.create",
    summary: "A live key for 15 minutes, for the web app.",
    method: "POST",
    path: "/dashboard/playground-key",
    body: "none",
    reply: PlaygroundKeyReply,
    status: 201,
    creates: true,
    plan: (call) =>
      Effect.map(Effect.all([started, callerOf(call)]), ([deps, caller]) =>
        freePlan(
          Effect.map(createPlaygroundKey(deps, caller), ({ row, key }) => ({
            status: 201,
            headers: onlyOnce,
            json: { ...toKey(row, 0n), key, expires_at: secondsOrNull(row.expires_at) },
          })),
        ),
      ),
  })

const scopes = (started: WhenStarted<AccountsDeps>) =>
  defineEndpoint({
    ...common,
    id: "dashboard.scopes",
    summary: "The scopes that keys may have: the ids of the endpoints that keys call.",
    method: "GET",
    path: "/dashboard/scopes",
    body: "none",
    reply: ScopeList,
    plan: () =>
      Effect.map(started, (deps) =>
        freePlan(
          Effect.sync(() => ({
            status: 200,
            json: { object: "list", data: scopesOf(deps.endpoints()) },
          })),
        ),
      ),
  })

/** The endpoints `/dashboard/keys`, `/dashboard/scopes` and `/dashboard/playground-key`. */
export const keyEndpoints = (started: WhenStarted<AccountsDeps>): readonly Endpoint[] => [
  listKeys(started),
  create(started),
  change(started),
  revoke(started),
  playground(started),
  scopes(started),
]
