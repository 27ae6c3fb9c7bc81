import { Effect } from "effect"
import { sql } from "kysely"
import {
  type ConsistencyCheck,
  type Finding,
  inPages,
  type PortError,
  type Tenant,
  type Transaction,
} from "../../../core/index.ts"
import type { FilesDeps } from "../deps.ts"
import type { FilesTables } from "../tables.ts"

interface Row extends Tenant {
  readonly said_bytes: bigint
  readonly said_files: bigint
  readonly bytes: bigint
  readonly files: bigint
}

/** What counts against the quota: files, open uploads, and running requests. */
const taken = sql`
  SELECT account, mode, bytes, 1 AS files FROM files_file WHERE counted AND deleted_at IS NULL
  UNION ALL SELECT account, mode, bytes, 1 FROM files_upload WHERE status = 'pending'
  UNION ALL SELECT account, mode, held_bytes, 0 FROM files_incoming`

const sums = sql`SELECT account, mode, sum(bytes)::bigint AS bytes, sum(files)::bigint AS files FROM (${taken}) t`

/** One statement, so one snapshot: rows and the quota row change in one transaction. */
const page =
  ({ database }: FilesDeps) =>
  (after: Row | undefined, limit: number): Effect.Effect<readonly Row[], PortError> =>
    Effect.map(
      database.run(() =>
        sql<Row>`
          SELECT account, mode, coalesce(u.bytes, 0)::bigint AS said_bytes, coalesce(u.files, 0)::bigint AS said_files, coalesce(s.bytes, 0)::bigint AS bytes, coalesce(s.files, 0)::bigint AS files
          FROM files_usage u FULL JOIN (${sums} GROUP BY account, mode) s USING (account, mode)
          WHERE (account, mode) > (${after?.account ?? ""}, ${after?.mode ?? ""}) ORDER BY account, mode LIMIT ${limit}`.execute(
          database.queries<FilesTables>(),
        ),
      ),
      ({ rows }) => rows,
    )

/**
 * Every change of the quota locks its row until the commit, so under this lock the counted rows are
 * complete.
 */
const recount =
  ({ database }: FilesDeps, { account, mode }: Tenant) =>
  (tx: Transaction): Effect.Effect<void, PortError> =>
    Effect.asVoid(
      database.run(async () => {
        const db = database.queries<FilesTables>(tx)
        await sql`INSERT INTO files_usage (account, mode, bytes, files) VALUES (${account}, ${mode}, 0, 0) ON CONFLICT DO NOTHING`.execute(
          db,
        )
        await sql`SELECT 1 FROM files_usage WHERE account = ${account} AND mode = ${mode} FOR UPDATE`.execute(
          db,
        )
        await sql`
          UPDATE files_usage SET bytes = coalesce(s.bytes, 0), files = coalesce(s.files, 0)
          FROM (SELECT sum(bytes) AS bytes, sum(files) AS files FROM (${taken}) t WHERE account = ${account} AND mode = ${mode}) s
          WHERE files_usage.account = ${account} AND files_usage.mode = ${mode}`.execute(db)
      }),
    )

const judge = (deps: FilesDeps) => (rows: readonly Row[]) =>
  Effect.succeed(
    rows
      .filter((row) => row.said_bytes !== row.bytes || row.said_files !== row.files)
      .map(
        (row): Finding => ({
          subject: `quota of account ${row.account} (${row.mode})`,
          problem: `it counts ${row.said_bytes} bytes and ${row.said_files} files; there are ${row.bytes} and ${row.files}`,
          remedy: "it is counted again",
          repair: deps.database.transaction(recount(deps, row)),
        }),
      ),
  )

export const quotaCheck = (deps: FilesDeps): ConsistencyCheck => ({
  name: "quota",
  about: "what each account's files take is what is counted against its quota",
  findings: (looked) => inPages({ page: page(deps), judge: judge(deps) }, looked),
})
