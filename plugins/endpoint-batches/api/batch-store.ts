import { Effect } from "effect"
import { sql } from "kysely"
import { type ApiError, apiError, isId, type PortError, type Tenant } from "../../../core/index.ts"
import type { BatchDeps } from "../deps.ts"
import type { BatchRow, BatchTables } from "../tables.ts"

/** Limit for one account; test and live mode count apart. */
export const maxOpenBatches = 1_000

export interface NewBatch {
  readonly tenant: Tenant
  readonly keyId: string
  readonly endpoint: string
  readonly inputFileId: string
  readonly metadata: Readonly<Record<string, string>> | null
}

const tooMany = () =>
  apiError(
    "conflict",
    `This account has ${maxOpenBatches.toLocaleString("en")} batches that have not ended, and more are not allowed: wait for one, or cancel one.`,
  )

const own = ({ account, mode }: Tenant) => ({ account, mode })

/** An id of another form is not looked up. */
const isBatchId = (id: string): boolean => isId(id) && id.startsWith("batch-")

export const insertBatch = (
  { database, clock, ids, limits }: BatchDeps,
  { tenant, keyId, endpoint, inputFileId, metadata }: NewBatch,
): Effect.Effect<BatchRow, ApiError | PortError> =>
  database.transaction((tx) =>
    Effect.gen(function* () {
      const db = database.queries<BatchTables>(tx)
      const open = yield* database.run(async () => {
        // serializes creations of this tenant, so that the count holds
        await sql`SELECT pg_advisory_xact_lock(hashtextextended(${`batch ${tenant.account} ${tenant.mode}`}, 0))`.execute(
          db,
        )
        const { many } = await db
          .selectFrom("batches_batch")
          .select((eb) => eb.fn.countAll<string>().as("many"))
          .where((eb) => eb.and(own(tenant)))
          .where("ended_at", "is", null)
          .executeTakeFirstOrThrow()
        return Number(many)
      })
      if (open >= maxOpenBatches) return yield* tooMany()
      const nowMs = clock.nowMs()
      const row = {
        ...own(tenant),
        id: ids.make("batch-"),
        key_id: keyId,
        endpoint,
        status: "validating" as const,
        input_file_id: inputFileId,
        metadata: metadata && JSON.stringify(metadata),
        total: 0,
        completed: 0,
        failed: 0,
        cost_micros: 0n,
        epoch: 0,
        done_through: 0,
        done_offset: 0n,
        created_at: new Date(nowMs),
        deadline_at: new Date(nowMs + limits.windowMs),
        expires_at: new Date(nowMs + limits.keepMs),
      }
      return yield* database.run(() =>
        db.insertInto("batches_batch").values(row).returningAll().executeTakeFirstOrThrow(),
      )
    }),
  )

export const findBatch = (
  { database }: BatchDeps,
  tenant: Tenant,
  id: string,
): Effect.Effect<BatchRow | undefined, PortError> => {
  if (!isBatchId(id)) return Effect.succeed(undefined)
  return database.run(() =>
    database
      .queries<BatchTables>()
      .selectFrom("batches_batch")
      .selectAll()
      .where("id", "=", id)
      .where((eb) => eb.and(own(tenant)))
      .executeTakeFirst(),
  )
}

/** Newest first; `before`: the `seq` of the last one seen. */
export const listBatches = (
  { database }: BatchDeps,
  tenant: Tenant,
  limit: number,
  before: bigint | undefined,
): Effect.Effect<readonly BatchRow[], PortError> =>
  database.run(() => {
    const query = database
      .queries<BatchTables>()
      .selectFrom("batches_batch")
      .selectAll()
      .where((eb) => eb.and(own(tenant)))
      .orderBy("seq", "desc")
      .limit(limit)
    return (before === undefined ? query : query.where("seq", "<", before)).execute()
  })

/**
 * Cancels a batch at once, in one statement. Its worker is notified when it is in this process;
 * elsewhere its heartbeat finds the status changed. Undefined: there is no such batch that has not
 * ended.
 */
export const cancelBatch = (
  { database, clock, cancels }: BatchDeps,
  tenant: Tenant,
  id: string,
): Effect.Effect<BatchRow | undefined, PortError> => {
  if (!isBatchId(id)) return Effect.succeed(undefined)
  const set = { status: "cancelled" as const, ended_at: new Date(clock.nowMs()) }
  const cancelled = database.run(() =>
    database
      .queries<BatchTables>()
      .updateTable("batches_batch")
      .set(set)
      .where("id", "=", id)
      .where((eb) => eb.and(own(tenant)))
      .where("ended_at", "is", null)
      .returningAll()
      .executeTakeFirst(),
  )
  return Effect.tap(cancelled, (row) => Effect.sync(() => row && cancels.publish(id)))
}

/**
 * Lines per second of the last 20 completed batches of this account at the endpoint; undefined:
 * there is none.
 */
export const measuredRate = (
  { database }: BatchDeps,
  tenant: Tenant,
  endpoint: string,
): Effect.Effect<number | undefined, PortError> =>
  database.run(async () => {
    const ended = await database
      .queries<BatchTables>()
      .selectFrom("batches_batch")
      .select(["total", "in_progress_at", "ended_at"])
      .where((eb) => eb.and({ ...own(tenant), endpoint, status: "completed" }))
      .orderBy("seq", "desc")
      .limit(20)
      .execute()
    const lines = ended.reduce((sum, { total }) => sum + total, 0)
    const ms = ended.reduce(
      (sum, { in_progress_at, ended_at }) =>
        sum + (ended_at?.getTime() ?? 0) - (in_progress_at?.getTime() ?? 0),
      0,
    )
    return lines > 0 ? (lines * 1000) / Math.max(ms, 1) : undefined
  })
