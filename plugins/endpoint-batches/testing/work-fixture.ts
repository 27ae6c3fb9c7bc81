import { Effect, Stream } from "effect"
import { sql } from "kysely"
import {
  type ApiError,
  type Clock,
  type Json,
  makeCallPath,
  makeIds,
  type Storage,
  systemClock,
  type Tenant,
  type Webhook,
} from "../../../core/index.ts"
import {
  fakeCatalogue,
  fakeEmbedModel,
  fakeIdentity,
  fakeLog,
  fakeMetrics,
  fakeStorage,
} from "../../../testing/index.ts"
import { openTestDatabase } from "../../../testing/postgres.ts"
import { makeCancels } from "../cancels.ts"
import type { BatchDeps } from "../deps.ts"
import { migrations } from "../migrations.ts"
import { type BatchLimits, limitsOf } from "../settings.ts"
import type { BatchRow, BatchTables } from "../tables.ts"
import { makeCrashes } from "./crashes.ts"
import { rowsBilling } from "./rows-billing.ts"
import { rowsFiles } from "./rows-files.ts"
import { inputText, makeTarget, path } from "./target.ts"

const defaults = limitsOf({
  maxLines: 50_000,
  maxLineMb: 8,
  windowHours: 24,
  memoryMb: 64,
  linesAtOnce: 8,
  batchesAtOnce: 4,
  pollMs: 20,
  leaseMs: 3_000,
})

const makeWebhook = (database: BatchDeps["database"]): Webhook => ({
  emit: (_, event, data, tx) =>
    Effect.asVoid(
      database.run(() =>
        sql`INSERT INTO test_event VALUES (${event}, ${JSON.stringify(data)}::jsonb)`.execute(
          database.queries(tx),
        ),
      ),
    ),
})

export interface WorkFixtureOptions {
  readonly clock?: Clock
  readonly limits?: Partial<BatchLimits>
  readonly run?: (n: number) => Effect.Effect<Json, ApiError>
  readonly storage?: Storage
}

/**
 * Batches over a real database and the real call path, with an engine that the test stands in for.
 */
export const openWorkFixture = async ({
  clock = systemClock,
  limits = {},
  run = (n) => Effect.succeed({ n }),
  storage = fakeStorage(),
}: WorkFixtureOptions = {}) => {
  const test = await openTestDatabase()
  await Effect.runPromise(test.database.migrate("endpoint-batches", migrations))
  await sql`CREATE TABLE test_event (event text NOT NULL, data jsonb NOT NULL)`.execute(
    test.database.queries(),
  )
  const crashes = makeCrashes(test.database, storage)
  const { database } = crashes
  const broke = new Set<string>()
  const maxHolds = new Map<string, number>()
  const identity = fakeIdentity()
  const { billing, calls } = await rowsBilling(test.database, broke, maxHolds)
  const ids = makeIds(clock.nowMs)
  const log = fakeLog()
  const files = await rowsFiles(test.database, crashes.storage, ids)
  const catalogue = fakeCatalogue(fakeEmbedModel())
  const callPath = makeCallPath({
    billing: () => billing,
    idempotency: () => undefined,
    catalogue,
    clock,
    ids,
    log,
    timeoutMs: 60_000,
  })
  const deps: BatchDeps = {
    database,
    storage: crashes.storage,
    files: files.files,
    billing,
    identity,
    callPath,
    catalogue,
    webhook: makeWebhook(test.database),
    clock,
    ids,
    log,
    metrics: fakeMetrics(),
    targets: new Map([[path, makeTarget(run)]]),
    limits: { ...defaults, ...limits },
    cancels: makeCancels(),
  }
  const db = test.database.queries<BatchTables>()

  /** Creates a batch of an account whose key is `key_<account>`. */
  const create = async (account: string, input: number | string): Promise<string> => {
    const tenant: Tenant = { account, mode: "live" }
    identity.add({ key: account, keyId: `key_${account}`, account })
    const inputFileId = await files.upload(
      tenant,
      typeof input === "number" ? inputText(input) : input,
    )
    const nowMs = clock.nowMs()
    const row = {
      ...tenant,
      id: ids.make("batch-"),
      key_id: `key_${account}`,
      endpoint: path,
      status: "validating" as const,
      input_file_id: inputFileId,
    }
    const times = {
      created_at: new Date(nowMs),
      deadline_at: new Date(nowMs + deps.limits.windowMs),
      expires_at: new Date(nowMs + deps.limits.keepMs),
    }
    const zeros = {
      total: 0,
      completed: 0,
      failed: 0,
      cost_micros: 0n,
      epoch: 0,
      done_through: 0,
      done_offset: 0n,
    }
    await db
      .insertInto("batches_batch")
      .values({ ...row, ...times, ...zeros, metadata: null })
      .execute()
    return row.id
  }
  const batch = (id: string): Promise<BatchRow> =>
    db.selectFrom("batches_batch").selectAll().where("id", "=", id).executeTakeFirstOrThrow()
  const cancel = (id: string) =>
    db
      .updateTable("batches_batch")
      .set({ status: "cancelled", ended_at: new Date(clock.nowMs()) })
      .where("id", "=", id)
      .where("ended_at", "is", null)
      .execute()
  const events = async () =>
    (
      await sql<{ event: string; data: { id: string } }>`SELECT * FROM test_event`.execute(
        test.database.queries(),
      )
    ).rows
  const parts = () =>
    Effect.runPromise(
      Effect.map(Stream.runCollect(storage.list("batches/")), (infos) =>
        infos.map(({ key }) => key),
      ),
    )
  const rowsOf = async (table: "batches_line" | "batches_part") =>
    (await db.selectFrom(table).select("batch_id").execute()).length
  /** The lines of a file, parsed; none for null. */
  const linesOf = async (file: string | null): Promise<readonly ResultLine[]> => {
    const found = (await files.rows()).find(({ id }) => id === file)
    return found
      ? (await files.text(found))
          .split("\n")
          .filter(Boolean)
          .map((text) => JSON.parse(text) as ResultLine)
      : []
  }
  return {
    deps,
    crashes,
    identity,
    broke,
    maxHolds,
    log,
    files,
    calls,
    create,
    batch,
    cancel,
    events,
    parts,
    rowsOf,
    linesOf,
    db,
    close: test.close,
  }
}
export type WorkFixture = Awaited<ReturnType<typeof openWorkFixture>>

export interface ResultLine {
  readonly id: string
  readonly custom_id: string
  readonly response: { readonly status_code: number; readonly body: { readonly n: number } } | null
  readonly error: { readonly code: string; readonly type: string } | null
}

/** Input numbers of these lines, in their order. */
export const numbersOf = (lines: readonly ResultLine[]): readonly number[] =>
  lines.map(({ custom_id }) => Number(custom_id.slice("line-".length)))

export const numbers = (count: number): readonly number[] =>
  Array.from({ length: count }, (_, n) => n)
