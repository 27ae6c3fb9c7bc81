import { Effect, Exit, Schema, Scope } from "effect"
import { sql } from "kysely"
import type { Database, PortError, Tenant, Transaction } from "../../../core/index.ts"
import { type FakeClock, type FakeLog, fakeClock, fakeLog } from "../../../testing/fakes.ts"
import { openTestDatabase } from "../../../testing/postgres.ts"
import type { RetrievalDeps } from "../deps.ts"
import { migrations } from "../migrations.ts"
import { Settings } from "../settings.ts"
import type { VectorQuery, VectorSpace, VectorStore } from "../vectors/vector-store.ts"

export interface VectorFixture {
  readonly deps: RetrievalDeps
  readonly database: Database
  readonly clock: FakeClock
  readonly log: FakeLog
  readonly store: VectorStore
  /** A document with a chunk for each vector, ready in the space. Returns its number. */
  add(owner: Tenant, space: VectorSpace, vectors: readonly Float32Array[]): Promise<bigint>
  /** Takes a document out of all searches. */
  hide(document: bigint): Promise<void>
  transaction<A>(body: (tx: Transaction) => Effect.Effect<A, PortError>): Promise<A>
  /** Document, index and score. */
  search(
    query: Omit<VectorQuery, "limit"> & { readonly limit?: number },
  ): Promise<readonly (readonly [bigint, number, number])[]>
  close(): Promise<void>
}

export type OpenStore = (
  deps: RetrievalDeps,
  mode: "server",
) => Effect.Effect<VectorStore, unknown, Scope.Scope>

let files = 0

const insertDocument = async (
  { database, clock }: RetrievalDeps,
  { account, mode }: Tenant,
  { id, dimensions }: VectorSpace,
  chunks: number,
): Promise<bigint> => {
  const expires = new Date(clock.nowMs() + 1_000_000)
  const { rows } = await sql<{ no: bigint }>`
    INSERT INTO retrieval_document (file_id, account, mode, state, chunks, space, dimensions, created_at, expires_at)
    VALUES (${`file-${++files}`}, ${account}, ${mode}, 'embedding', ${chunks}, ${id}, ${dimensions}, ${new Date(clock.nowMs())}, ${expires})
    RETURNING no`.execute(database.queries())
  const { no } = rows[0]!
  await sql`
    INSERT INTO retrieval_chunk (document_no, idx, start_at, end_at, text, words)
    SELECT ${no}, idx, 0, 1, '', '' FROM generate_series(0, ${chunks - 1}::int) AS idx`.execute(
    database.queries(),
  )
  return no
}

/** As ingest and removal do it: the version changes with the state. */
const setState = async (
  database: Database,
  document: bigint,
  state: "ready" | "removed",
  at: Date,
): Promise<void> => {
  await sql`
    WITH changed AS (
      UPDATE retrieval_document SET state = ${state}, removed_at = ${state === "removed" ? at : null}
      WHERE no = ${document} RETURNING account, mode
    )
    INSERT INTO retrieval_tenant (account, mode, version) SELECT account, mode, 1 FROM changed
    ON CONFLICT (account, mode) DO UPDATE SET version = retrieval_tenant.version + 1`.execute(
    database.queries(),
  )
}

/** A store over a database of its own. */
export const vectorFixture = async (
  openStore: OpenStore,
  settings: object = {},
  server?: string,
): Promise<VectorFixture> => {
  const test = await openTestDatabase(server)
  const { database } = test
  await Effect.runPromise(database.migrate("endpoint-retrieval", migrations))
  const clock = fakeClock()
  const log = fakeLog()
  const all = { ...Schema.decodeUnknownSync(Settings)({}), ...settings }
  const deps: RetrievalDeps = { database, clock, log, settings: all }
  const scope = Scope.makeUnsafe()
  const store = await Effect.runPromise(openStore(deps, "server").pipe(Scope.provide(scope)))
  const transaction: VectorFixture["transaction"] = (body) =>
    Effect.runPromise(database.transaction(body))
  return {
    deps,
    database,
    clock,
    log,
    store,
    transaction,
    add: async (owner, space, vectors) => {
      const no = await insertDocument(deps, owner, space, vectors.length)
      await transaction((tx) => store.put(no, space, 0, vectors, tx))
      await setState(database, no, "ready", new Date(clock.nowMs()))
      return no
    },
    hide: (document) => setState(database, document, "removed", new Date(clock.nowMs())),
    search: async (query) => {
      const hits = await Effect.runPromise(store.search({ limit: 5, ...query }))
      return hits.map(({ document, index, score }) => [document, index, score] as const)
    },
    close: async () => {
      await Effect.runPromise(Scope.close(scope, Exit.void))
      await test.close()
    },
  }
}
