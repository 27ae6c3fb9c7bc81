import { Effect, Schema, Stream } from "effect"
import { sql } from "kysely"
import { makeCallPath, makeIds } from "../../../core/index.ts"
import {
  type FakeEmbedScript,
  fakeCatalogue,
  fakeClock,
  fakeEmbedModel,
  fakeIdentity,
  fakeLog,
  fakeMetrics,
  fakeQueue,
  fakeWorkers,
} from "../../../testing/index.ts"
import { openTestDatabase, type TestDatabase } from "../../../testing/postgres.ts"
import type { IngestDeps } from "../ingest/ingest-deps.ts"
import { ingestObserver } from "../ingest/ingest-job.ts"
import { migrations } from "../migrations.ts"
import { type DocumentReader, IngestFailure } from "../reading/document-reader.ts"
import { Settings } from "../settings.ts"
import type { ChunkRow, DocumentRow, RetrievalTables } from "../tables.ts"
import { toHalves, unitPrefix } from "../vectors/half-floats.ts"
import { vectorRows } from "../vectors/vector-rows.ts"
import { rowsBilling } from "./rows-billing.ts"
import { rowsFiles } from "./rows-files.ts"

const linesAtOnce = 10

/** A chunk of each line; a file that begins with `!` is encrypted. */
const lineReader: DocumentReader = {
  read: (_, bytes) =>
    Stream.unwrap(
      Effect.map(Stream.runCollect(bytes), (parts) => {
        const text = Buffer.concat([...parts]).toString()
        if (text.startsWith("!"))
          return Stream.fail(new IngestFailure({ code: "encrypted", message: "It is encrypted." }))
        let at = 0
        const chunks = text.split("\n").map((line, index) => {
          const start = at
          at += line.length + 1
          return { index, text: line, start, end: start + line.length }
        })
        const batches = Array.from({ length: Math.ceil(chunks.length / linesAtOnce) }, (_, n) =>
          chunks.slice(n * linesAtOnce, (n + 1) * linesAtOnce),
        )
        return Stream.fromIterable(
          batches.map((batch) => ({ chunks: batch, characters: batch.at(-1)!.end })),
        )
      }),
    ),
}

/** After the tests of a file: others of the same process open their own. */
export const closeShared = async (): Promise<void> => {
  await shared?.close()
  shared = undefined
}

export interface IngestFixtureOptions {
  readonly settings?: Partial<Settings>
  readonly model?: FakeEmbedScript
  readonly balanceMicros?: bigint
}

let shared: TestDatabase | undefined

/** One database for all tests of a file, as a new one takes long; without rows. */
const empty = async (): Promise<TestDatabase> => {
  if (!shared) {
    shared = await openTestDatabase()
    await Effect.runPromise(shared.database.migrate("endpoint-retrieval", migrations))
  }
  const db = shared.database.queries()
  const tables = ["retrieval_document", "retrieval_tenant", "retrieval_chunk", "retrieval_vector"]
  for (const table of tables) await sql`DELETE FROM ${sql.table(table)}`.execute(db)
  return shared
}

/** Ingest over a real database and the real call path. */
export const openIngestFixture = async ({
  settings = {},
  model = {},
  balanceMicros = 50_000_000_000n,
}: IngestFixtureOptions = {}) => {
  const { database } = await empty()
  const clock = fakeClock()
  const ids = makeIds(clock.nowMs)
  const log = fakeLog()
  const money = { balanceMicros, heldMicros: 0n }
  const { billing, calls } = await rowsBilling(database, () => money)
  const { files, upload, file } = await rowsFiles(database, clock.nowMs)
  const embedModel = fakeEmbedModel({ dimensions: 8, ...model })
  const catalogue = fakeCatalogue(embedModel)
  const identity = fakeIdentity([{ key: "svc_live_1", keyId: "key_1" }])
  const callPath = makeCallPath({
    billing: () => billing,
    idempotency: () => undefined,
    catalogue,
    clock,
    ids,
    log,
    timeoutMs: 60_000,
  })
  const rows = vectorRows(database, {
    table: "retrieval_vector",
    encode: (vector, length) => Buffer.from(toHalves(unitPrefix(vector, length)).buffer),
  })
  const deps: IngestDeps = {
    database,
    clock,
    log,
    settings: { ...Schema.decodeUnknownSync(Settings)({}), ...settings },
    files,
    queue: fakeQueue(clock),
    billing,
    identity,
    callPath,
    catalogue,
    ids,
    metrics: fakeMetrics(),
    workers: fakeWorkers(),
    reader: lineReader,
    vectors: { name: "rows", search: () => Effect.succeed([]), ...rows },
  }
  files.observe(ingestObserver(deps))
  const db = database.queries<RetrievalTables>()
  const document = (id: string): Promise<DocumentRow | undefined> =>
    db.selectFrom("retrieval_document").selectAll().where("file_id", "=", id).executeTakeFirst()
  const chunks = (): Promise<readonly ChunkRow[]> =>
    db.selectFrom("retrieval_chunk").selectAll().orderBy("idx").execute()
  const vectors = async () =>
    (
      await sql<{
        idx: number
        space: string
        bytes: number
      }>`SELECT idx, space, octet_length(vector) AS bytes FROM retrieval_vector ORDER BY space, idx`.execute(
        db,
      )
    ).rows
  const version = async () =>
    (await db.selectFrom("retrieval_tenant").select("version").executeTakeFirst())?.version ?? 0n
  return {
    deps,
    embedModel,
    identity,
    money,
    log,
    clock,
    upload,
    file,
    calls,
    document,
    chunks,
    vectors,
    version,
  }
}
export type IngestFixture = Awaited<ReturnType<typeof openIngestFixture>>
