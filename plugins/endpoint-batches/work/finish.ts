import { Effect } from "effect"
import { sql } from "kysely"
import {
  type NewFile,
  PortError,
  type StorageError,
  type Tenant,
  type Transaction,
} from "../../../core/index.ts"
import type { BatchDeps } from "../deps.ts"
import type { BatchError, BatchRow, BatchTables } from "../tables.ts"
import { eventData } from "../wire.ts"
import { type Lease, readLeased } from "./lease.ts"
import { type Kind, resultBytes } from "./results.ts"
import { dropParts } from "./sweep.ts"

/** How a worker ends a batch. Each of these keeps the answers there are. */
export type Ending =
  | { readonly status: "completed" | "expired" }
  | { readonly status: "failed"; readonly errors: readonly BatchError[] }

const tenantOf = ({ account, mode }: BatchRow): Tenant => ({ account, mode })

const wantsFile = ({ completed, failed }: BatchRow, { status }: Ending, kind: Kind): boolean =>
  kind === "error" ? failed > 0 : completed > 0 || status === "completed"

/** Writes the blob of a file that is not listed yet. If it never is, the files plugin sweeps it. */
const makeFile = (
  deps: BatchDeps,
  row: BatchRow,
  ending: Ending,
  kind: Kind,
): Effect.Effect<NewFile | undefined, StorageError> => {
  if (!wantsFile(row, ending, kind)) return Effect.succeed(undefined)
  const tenant = tenantOf(row)
  const blobKey = deps.files.newBlobKey(tenant)
  return Effect.map(
    deps.storage.put(blobKey, resultBytes(deps, row.id, kind), Number.MAX_SAFE_INTEGER),
    ({ bytes }) => ({
      id: deps.files.newId(),
      tenant,
      filename: `${row.id}_${kind}.jsonl`,
      purpose: kind === "output" ? ("batch_output" as const) : ("batch_error" as const),
      blobKey,
      bytes,
      expiresMs: deps.clock.nowMs() + deps.limits.keepMs,
    }),
  )
}

const close = (
  { database, clock }: BatchDeps,
  row: BatchRow,
  ending: Ending,
  output: NewFile | undefined,
  error: NewFile | undefined,
  tx: Transaction,
) =>
  database.run(() =>
    database
      .queries<BatchTables>(tx)
      .updateTable("batches_batch")
      .set({
        status: ending.status,
        // otherwise those that pre-flight found in single lines stay
        ...(ending.status === "failed" && {
          errors: sql`${JSON.stringify(ending.errors)}::jsonb`,
        }),
        output_file_id: output?.id ?? null,
        error_file_id: error?.id ?? null,
        ended_at: new Date(clock.nowMs()),
        lease_until: null,
      })
      .where("id", "=", row.id)
      .where("epoch", "=", row.epoch)
      .where("status", "=", row.status)
      .returningAll()
      .executeTakeFirst(),
  )

/** A safeguard: the next worker runs the missing lines. */
const unanswered = ({ total, completed, failed }: BatchRow) =>
  new PortError({
    port: "batches",
    message: `${total - completed - failed} lines were not answered`,
  })

/**
 * Ends the batch: commits files, status and event together. Returns the ended batch; undefined: it
 * was cancelled, or another worker has it.
 */
export const finish = (
  deps: BatchDeps,
  lease: Lease,
  ending: Ending,
  withFiles = true,
): Effect.Effect<BatchRow | undefined, StorageError> =>
  Effect.gen(function* () {
    const row = yield* readLeased(deps, lease)
    if (!row) return undefined
    if (ending.status === "completed" && row.completed + row.failed < row.total)
      return yield* unanswered(row)
    const output = withFiles ? yield* makeFile(deps, row, ending, "output") : undefined
    const error = withFiles ? yield* makeFile(deps, row, ending, "error") : undefined
    const ended = yield* deps.database.transaction((tx) =>
      Effect.gen(function* () {
        const closed = yield* close(deps, row, ending, output, error, tx)
        if (!closed) return undefined
        for (const file of [output, error]) if (file) yield* deps.files.create(file, tx)
        yield* deps.database.run(() =>
          deps.database
            .queries<BatchTables>(tx)
            .deleteFrom("batches_line")
            .where("batch_id", "=", row.id)
            .execute(),
        )
        if (closed.status !== "expired")
          yield* deps.webhook.emit(tenantOf(row), `batch.${closed.status}`, eventData(closed), tx)
        return closed
      }),
    )
    // what is left over is swept
    if (ended) yield* Effect.ignore(dropParts(deps, row.id))
    return ended
  })
