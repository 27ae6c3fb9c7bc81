import { Effect } from "effect"
import {
  type ConsistencyCheck,
  type Finding,
  inPages,
  type PortError,
} from "../../../core/index.ts"
import { isBlobOf } from "../blobs/blob-key.ts"
import type { FilesDeps } from "../deps.ts"
import type { FileRow, FilesTables } from "../tables.ts"
import { problemOfBlob } from "./blob-of-row.ts"

type Row = Pick<FileRow, "id" | "seq" | "account" | "mode" | "blob_key" | "bytes">

const concurrency = 16

const page =
  ({ database }: FilesDeps) =>
  (after: Row | undefined, limit: number): Effect.Effect<readonly Row[], PortError> =>
    database.run(() =>
      database
        .queries<FilesTables>()
        .selectFrom("files_file")
        .select(["id", "seq", "account", "mode", "blob_key", "bytes"])
        .where("deleted_at", "is", null)
        .where("seq", ">", after?.seq ?? 0n)
        .orderBy("seq")
        .limit(limit)
        .execute(),
    )

const exists = ({ database }: FilesDeps, id: string): Effect.Effect<boolean, PortError> =>
  Effect.map(
    database.run(() =>
      database
        .queries<FilesTables>()
        .selectFrom("files_file")
        .select("id")
        .where("id", "=", id)
        .where("deleted_at", "is", null)
        .executeTakeFirst(),
    ),
    (row) => row !== undefined,
  )

const problemOf = (
  { storage }: FilesDeps,
  { account, mode, blob_key, bytes }: Row,
): Effect.Effect<string | undefined, PortError> =>
  isBlobOf({ account, mode }, blob_key)
    ? problemOfBlob(storage, blob_key, Number(bytes))
    : Effect.succeed(`its blob ${blob_key} is another account's`)

/**
 * Nothing is repaired here: a row whose bytes are lost is the only trace of them, and only a person
 * can say whether a backup has them.
 */
const judge = (deps: FilesDeps) => (rows: readonly Row[]) =>
  Effect.map(
    Effect.forEach(
      rows,
      (row) =>
        Effect.gen(function* () {
          const problem = yield* problemOf(deps, row)
          // a deleted file's bytes go a moment after its row
          if (problem === undefined || !(yield* exists(deps, row.id))) return []
          return [{ subject: `file ${row.id} of account ${row.account} (${row.mode})`, problem }]
        }),
      { concurrency },
    ),
    (found): readonly Finding[] => found.flat(),
  )

export const fileCheck = (deps: FilesDeps): ConsistencyCheck => ({
  name: "files",
  about: "each file has a blob of its account, of the size that its row says",
  findings: (looked) => inPages({ page: page(deps), judge: judge(deps) }, looked),
})
