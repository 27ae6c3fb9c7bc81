import { Effect, Result, Stream } from "effect"
import { sql } from "kysely"
import {
  type ApiError,
  type BodyPart,
  isApiError,
  type MultipartBody,
  makeIds,
  type Storage,
  type Tenant,
} from "../../../core/index.ts"
import { fakeClock, fakeLog, fakeStorage } from "../../../testing/index.ts"
import { openTestDatabase } from "../../../testing/postgres.ts"
import type { FilesDeps } from "../deps.ts"
import { migrations } from "../migrations.ts"
import type { FileLimits } from "../settings.ts"

export const tenant: Tenant = { account: "acct_1", mode: "live" }

const smallLimits: FileLimits = {
  maxFileBytes: 600,
  quotaBytes: 1000,
  maxFiles: 50,
  keepMs: 30 * 24 * 3_600_000,
}

/** The plugin's deps over a real database, with a clock that the test moves, and small limits. */
export const openFixture = async (
  storage: Storage = fakeStorage(),
  limits: Partial<FileLimits> = {},
) => {
  const test = await openTestDatabase()
  await Effect.runPromise(test.database.migrate("endpoint-files", migrations))
  const clock = fakeClock()
  const deps: FilesDeps = {
    database: test.database,
    storage,
    clock,
    ids: makeIds(clock.nowMs),
    log: fakeLog(),
    limits: { ...smallLimits, ...limits },
    observers: [],
  }
  const rowsOf = async (table: string) =>
    (
      await sql<Record<string, unknown>>`SELECT * FROM ${sql.table(table)}`.execute(
        test.database.queries(),
      )
    ).rows
  const blobs = () =>
    Effect.runPromise(
      Effect.map(Stream.runCollect(storage.list("")), (infos) => infos.map(({ key }) => key)),
    )
  /** The quota row beside the sum of the rows: equal whenever no request runs. */
  const quota = async () => {
    const { rows } = await sql<{ said: bigint; sum: bigint; files: bigint; count: bigint }>`
      SELECT coalesce((SELECT sum(bytes) FROM files_usage), 0)::bigint AS said, coalesce((SELECT sum(files) FROM files_usage), 0)::bigint AS files,
        (coalesce((SELECT sum(bytes) FROM files_file WHERE counted AND deleted_at IS NULL), 0) + coalesce((SELECT sum(bytes) FROM files_upload WHERE status = 'pending'), 0)
          + coalesce((SELECT sum(held_bytes) FROM files_incoming), 0))::bigint AS sum,
        ((SELECT count(*) FROM files_file WHERE counted AND deleted_at IS NULL) + (SELECT count(*) FROM files_upload WHERE status = 'pending'))::bigint AS count`.execute(
      test.database.queries(),
    )
    return rows[0]!
  }
  return { deps, clock, rowsOf, blobs, quota, close: test.close }
}
export type Fixture = Awaited<ReturnType<typeof openFixture>>

export const chunks = (size: number, piece = 100): Stream.Stream<Uint8Array, ApiError> =>
  Stream.fromIterable(
    Array.from({ length: Math.ceil(size / piece) }, (_, at) =>
      new Uint8Array(Math.min(piece, size - at * piece)).fill(97),
    ),
  )

export const filePart = (
  bytes: number | Stream.Stream<Uint8Array, ApiError>,
  name = "file",
  filename = "a.jsonl",
): BodyPart => ({
  kind: "file",
  name,
  filename,
  mediaType: "application/octet-stream",
  bytes: typeof bytes === "number" ? chunks(bytes) : bytes,
})
export const field = (name: string, value: string): BodyPart => ({ kind: "field", name, value })
export const formOf = (parts: readonly BodyPart[], contentLength?: number): MultipartBody => ({
  parts: Stream.fromIterable(parts),
  contentLength,
})

/** Returns the value, or the code of the error. */
export const outcome = async <A, E>(work: Effect.Effect<A, E>): Promise<A | string> => {
  const result = await Effect.runPromise(
    work.pipe(
      Effect.map((value) => Result.succeed(value)),
      Effect.catch((error) => Effect.succeed(Result.fail(error))),
    ),
  )
  if (Result.isSuccess(result)) return result.success
  const { failure } = result
  return isApiError(failure) ? failure.code : (failure as { _tag: string })._tag
}
