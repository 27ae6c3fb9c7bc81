import { Effect, Option, Schema, Stream } from "effect"
import {
  type ApiError,
  badQuery,
  defineEndpoint,
  type Endpoint,
  firstOf,
  freePlan,
  listSchema,
  type Page,
  type PlanError,
  type PortError,
  pageQuery,
  placeOf,
  type Reply,
  toList,
  type WhenStarted,
  wordQuery,
} from "../../../core/index.ts"
import type { AccountsDeps } from "../deps.ts"
import { parseEmail } from "../email.ts"
import { readTime, textFilter, timeQuery } from "../list-query.ts"
import {
  type AuditFilter,
  type AuditList,
  type AuditPlace,
  type AuditRow,
  makeAuditList,
} from "./audit-list.ts"
import { csvLine } from "./csv.ts"

const csvType = "text/csv; charset=utf-8"
const maxFilterCharacters = 400
const rowsPerPiece = 1_000

const email = Schema.NullOr(Schema.String).annotate({
  description: "The address that the account has now; null where it is no account.",
})

export const AuditEntryReply = Schema.Struct({
  id: Schema.String,
  object: Schema.Literal("audit_entry"),
  actor: Schema.String.annotate({
    description: "Account id; `system`, `cli` or `anonymous` where there is none.",
  }),
  actor_email: email,
  action: Schema.String,
  target: Schema.String,
  target_email: email,
  before: Schema.Unknown.annotate({ description: "The changed fields as they were, or null." }),
  after: Schema.Unknown.annotate({ description: "The changed fields as they are now, or null." }),
  created_at: Schema.Int.annotate({ description: "Unix seconds." }),
}).annotate({ identifier: "AuditEntry" })
type AuditEntryReply = typeof AuditEntryReply.Type

const toEntry = (
  { id, actor, action, target, before, after, created_at }: AuditRow,
  emails: ReadonlyMap<string, string>,
): AuditEntryReply => ({
  ...{ id, object: "audit_entry", actor, action, target, before, after },
  actor_email: emails.get(actor) ?? null,
  target_email: emails.get(target) ?? null,
  created_at: Math.floor(created_at.getTime() / 1000),
})

const csvHead = csvLine(["id", "created_at", "actor", "action", "target", "before", "after"])
const jsonCell = (value: unknown): string => (value === null ? "" : JSON.stringify(value))
const toCsv = ({ id, created_at, actor, action, target, before, after }: AuditRow): string =>
  csvLine([id, created_at.toISOString(), actor, action, target, jsonCell(before), jsonCell(after)])

const aboutNames = "An id, or the e-mail address of an account."

const AuditQuery = Schema.Struct({
  ...pageQuery,
  actor: textFilter(maxFilterCharacters).annotate({ description: aboutNames }),
  action: textFilter(maxFilterCharacters),
  target: textFilter(maxFilterCharacters).annotate({ description: aboutNames }),
  from: timeQuery,
  to: timeQuery,
  format: wordQuery(["json", "csv"]),
})

/** An e-mail address stands for its account, and for itself, as attempts name addresses. */
const namedBy = (
  deps: AccountsDeps,
  text: string | undefined,
): Effect.Effect<readonly string[] | undefined, PortError> => {
  if (!text) return Effect.succeed(undefined)
  const email = parseEmail(text)
  if (email === undefined) return Effect.succeed([text])
  return Effect.map(deps.accounts.byEmail(email), (row) => [text, email, ...(row ? [row.id] : [])])
}

const readFilters = (
  deps: AccountsDeps,
  query: typeof AuditQuery.Type,
): Effect.Effect<AuditFilter, ApiError | PortError> =>
  Effect.gen(function* () {
    const [from, to] = [yield* readTime(query, "from"), yield* readTime(query, "to")]
    if (from && to && to < from) return yield* badQuery("to", "must not be before from")
    return {
      actor: yield* namedBy(deps, query.actor),
      action: query.action ? [query.action] : undefined,
      target: yield* namedBy(deps, query.target),
      from,
      to,
    }
  })

/**
 * Streams all entries that match the filter, page by page. Entries written meanwhile are newer, so
 * they are not part of it.
 */
const csvReply = (store: AuditList, filter: AuditFilter): Reply<PlanError> => {
  const piece = (
    before: AuditPlace | undefined,
  ): Effect.Effect<readonly [readonly string[], Option.Option<AuditPlace>], PortError> =>
    Effect.map(store.list(filter, rowsPerPiece, before), (rows) => [
      [rows.map(toCsv).join("")],
      rows.length < rowsPerPiece ? Option.none() : Option.fromNullishOr(rows.at(-1)),
    ])
  const text = Stream.concat(
    Stream.make(csvHead),
    Stream.paginate(undefined as AuditPlace | undefined, piece),
  )
  return {
    status: 200,
    mediaType: csvType,
    headers: { "content-disposition": 'attachment; filename="audit.csv"' },
    bytes: Stream.encodeText(text),
  }
}

const page = (
  store: AuditList,
  filter: AuditFilter,
  wanted: Page,
): Effect.Effect<Reply, ApiError | PortError> =>
  Effect.gen(function* () {
    const before = yield* placeOf(wanted.after, store.place)
    const { rows, hasMore } = firstOf(yield* store.list(filter, wanted.limit + 1, before), wanted)
    const ids = new Set(rows.flatMap(({ actor, target }) => [actor, target]))
    const emails = yield* store.emails([...ids])
    const entries = rows.map((row) => toEntry(row, emails))
    return { status: 200, json: toList(entries, hasMore) }
  })

/** `GET /admin/audit` */
export const auditEndpoint = (started: WhenStarted<AccountsDeps>): Endpoint =>
  defineEndpoint({
    id: "admin.audit.list",
    summary: "Who changed what, and when; newest first.",
    method: "GET",
    path: "/admin/audit",
    access: "admin",
    body: "none",
    maxBodyBytes: 0,
    reply: listSchema(AuditEntryReply, "AuditEntryList"),
    mediaTypes: [csvType],
    query: AuditQuery,
    plan: ({ query }) =>
      Effect.map(started, (deps) => {
        const store = makeAuditList(deps.database)
        return freePlan(
          Effect.flatMap(readFilters(deps, query), (filter) =>
            query.format === "csv"
              ? Effect.succeed(csvReply(store, filter))
              : page(store, filter, query),
          ),
        )
      }),
  })
