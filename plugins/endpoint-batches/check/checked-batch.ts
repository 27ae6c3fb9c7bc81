import { Effect } from "effect"
import { sql } from "kysely"
import type { Ledger, PortError } from "../../../core/index.ts"
import type { BatchDeps } from "../deps.ts"
import type { BatchRow, BatchTables, PartRow } from "../tables.ts"

/** The dependencies of the checks. */
export interface CheckDeps extends BatchDeps {
  /** Undefined in a deployment without a ledger. */
  readonly ledger: () => Ledger | undefined
}

/** A batch with its reorder buffer and its segments, read in one statement. */
export interface CheckedBatch extends BatchRow {
  readonly lines: number
  readonly ok_lines: number
  readonly first_line: number | null
  readonly parts: readonly PartRow[]
}

type CheckedRow = Omit<CheckedBatch, "parts"> & {
  readonly parts: readonly (Omit<PartRow, "bytes"> & { readonly bytes: number })[] | null
}

const select = sql`
  SELECT b.*, l.lines, l.ok_lines, l.first_line, p.parts FROM batches_batch b
    CROSS JOIN LATERAL (SELECT count(*)::int AS lines, (count(*) FILTER (WHERE ok))::int AS ok_lines, min(line) AS first_line FROM batches_line WHERE batch_id = b.id) l
    CROSS JOIN LATERAL (SELECT json_agg(to_json(p) ORDER BY kind, part) AS parts FROM batches_part p WHERE batch_id = b.id) p`

const read = (
  { database }: BatchDeps,
  rest: ReturnType<typeof sql>,
): Effect.Effect<readonly CheckedBatch[], PortError> =>
  Effect.map(
    database.run(() => sql<CheckedRow>`${select} ${rest}`.execute(database.queries<BatchTables>())),
    ({ rows }) =>
      rows.map((row) => ({
        ...row,
        parts: (row.parts ?? []).map((part) => ({ ...part, bytes: BigInt(part.bytes) })),
      })),
  )

export const batchPage =
  (deps: BatchDeps) =>
  (
    after: CheckedBatch | undefined,
    limit: number,
  ): Effect.Effect<readonly CheckedBatch[], PortError> =>
    read(deps, sql`WHERE b.seq > ${after?.seq ?? 0n} ORDER BY b.seq LIMIT ${limit}`)

export const batchNow = (
  deps: BatchDeps,
  id: string,
): Effect.Effect<CheckedBatch | undefined, PortError> =>
  Effect.map(read(deps, sql`WHERE b.id = ${id}`), ([row]) => row)

/** How a finding names the batch. */
export const subjectOf = ({ id, account, mode }: BatchRow): string =>
  `batch ${id} of account ${account} (${mode})`

/** Whether a worker has changed the batch between two reads. */
export const hasGoneOn = (before: CheckedBatch, now: CheckedBatch | undefined): boolean =>
  now === undefined ||
  now.status !== before.status ||
  now.epoch !== before.epoch ||
  now.done_through !== before.done_through
