import { Effect, Stream } from "effect"
import { sql } from "kysely"
import {
  type ConsistencyCheck,
  type Finding,
  inPages,
  type PortError,
} from "../../../core/index.ts"
import { deleteBlobs, scheduleDeletion } from "../blobs/deletion-queue.ts"
import { abandonIncoming } from "../blobs/incoming.ts"
import type { FilesDeps } from "../deps.ts"
import type { FilesTables, PartRow } from "../tables.ts"
import { expireUploads } from "../uploads/close-upload.ts"
import { problemOfBlob } from "./blob-of-row.ts"

/** A live server sweeps every minute. */
const overdueMs = 10 * 60_000
const concurrency = 16

interface OwnedRow {
  readonly id: string
  readonly account: string
  readonly mode: string
}

const ownerOf = ({ account, mode }: Pick<OwnedRow, "account" | "mode">): string =>
  `account ${account} (${mode})`

/** Finds the rows that the sweeper should have handled long ago. */
const overdue = (
  deps: FilesDeps,
  table: "files_upload" | "files_incoming",
  since: ReturnType<typeof sql>,
  findingOf: (row: OwnedRow) => Finding,
  looked: (things: number) => void,
) => {
  const { database } = deps
  const page = (after: OwnedRow | undefined, limit: number) =>
    Effect.map(
      database.run(() =>
        sql<OwnedRow>`SELECT id, account, mode FROM ${sql.table(table)} WHERE ${since} AND id > ${after?.id ?? ""} ORDER BY id LIMIT ${limit}`.execute(
          database.queries<FilesTables>(),
        ),
      ),
      ({ rows }) => rows,
    )
  return inPages({ page, judge: (rows) => Effect.succeed(rows.map(findingOf)) }, looked)
}

interface Part extends PartRow {
  readonly is_open: boolean
}

const partPage =
  ({ database }: FilesDeps) =>
  (after: Part | undefined, limit: number): Effect.Effect<readonly Part[], PortError> =>
    Effect.map(
      database.run(() =>
        sql<Part>`
          SELECT p.*, EXISTS (SELECT 1 FROM files_upload u WHERE u.id = p.upload_id AND u.status = 'pending') AS is_open
          FROM files_part p WHERE p.id > ${after?.id ?? ""} ORDER BY p.id LIMIT ${limit}`.execute(
          database.queries<FilesTables>(),
        ),
      ),
      ({ rows }) => rows,
    )

const stillThere = ({ database }: FilesDeps, { id }: Part): Effect.Effect<boolean, PortError> =>
  Effect.map(
    database.run(() =>
      database
        .queries<FilesTables>()
        .selectFrom("files_part")
        .select("id")
        .where("id", "=", id)
        .executeTakeFirst(),
    ),
    (row) => row !== undefined,
  )

const dropPart = (deps: FilesDeps, { id, blob_key }: Part): Effect.Effect<void, PortError> =>
  Effect.andThen(
    deps.database.transaction((tx) =>
      Effect.andThen(
        deps.database.run(() =>
          deps.database
            .queries<FilesTables>(tx)
            .deleteFrom("files_part")
            .where("id", "=", id)
            .execute(),
        ),
        scheduleDeletion(deps, [blob_key], tx),
      ),
    ),
    deleteBlobs(deps, [blob_key]),
  )

const judgePart = (deps: FilesDeps) => (part: Part) =>
  Effect.gen(function* () {
    const subject = `part ${part.id} of upload ${part.upload_id}`
    const problem = part.is_open
      ? yield* problemOfBlob(deps.storage, part.blob_key, Number(part.bytes))
      : "its upload is over, or there is none"
    // completed or cancelled meanwhile
    if (problem === undefined || !(yield* stillThere(deps, part))) return []
    const remedy = part.is_open
      ? "it is dropped, so that completing the upload names it and it can be sent again"
      : "it is dropped with its blob"
    return [{ subject, problem, remedy, repair: dropPart(deps, part) } satisfies Finding]
  })

export const uploadCheck = (deps: FilesDeps): ConsistencyCheck => ({
  name: "uploads",
  about:
    "each part belongs to an open upload and has its blob; uploads and requests that are over hold nothing",
  findings: (looked) => {
    const before = new Date(deps.clock.nowMs() - overdueMs)
    const uploads = overdue(
      deps,
      "files_upload",
      sql`status = 'pending' AND expires_at <= ${before}`,
      (row) => ({
        subject: `upload ${row.id} of ${ownerOf(row)}`,
        problem: "its time is over, and it is still open",
        remedy: "it expires",
        repair: Effect.asVoid(expireUploads(deps)),
      }),
      looked,
    )
    const requests = overdue(
      deps,
      "files_incoming",
      sql`lease_until <= ${before}`,
      (row) => ({
        subject: `request ${row.id} of ${ownerOf(row)}`,
        problem: "its server died, and its bytes are still held",
        remedy: "it is given up",
        repair: abandonIncoming(deps, row.id),
      }),
      looked,
    )
    const judge = (rows: readonly Part[]) =>
      Effect.map(
        Effect.forEach(rows, judgePart(deps), { concurrency }),
        (found): readonly Finding[] => found.flat(),
      )
    return uploads.pipe(
      Stream.concat(requests),
      Stream.concat(inPages({ page: partPage(deps), judge }, looked)),
    )
  },
})
