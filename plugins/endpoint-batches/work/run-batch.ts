/**
 * The lines of one batch. A line goes through these states, and holds in each only what is in
 * brackets:
 *
 *   waiting       [nothing but its text]                 for the line scheduler
 *      | permit
 *   admitted      [slot, bytes of text and body]
 *      | call admitted by the ledger                     refused, or engine busy ---> resting  [slot and bytes are lent,
 *   running       [slot, bytes, money]                        <--- tries again ----            no money]
 *      | result
 *   answered      [bytes of the result, money]           in the commit buffer
 *      | transaction: row, counters, settlement
 *   committed     [row in batches_line]
 *      | all lines before it are committed
 *   in a segment  [part of a blob]
 *
 *   waiting, admitted, running, resting --- cancelled, interrupted, defect ---> not run     [nothing]
 *   answered --- lease lost, commit failed ---> voided: costs nothing, runs again elsewhere [nothing]
 *   answered --- outage of database or disk ---> answered, until it is over
 *
 * - From `admitted` on one `LineRun` owns permit, hold and buffer entry. Its `release` is the one
 *   place that frees them, once, on every way out.
 * - A line is answered once and paid once: row, counters and settlement are one transaction, fenced
 *   by the epoch of the lease.
 * - The ledger holds the money of a call until it is settled or voided. The hold of the tracker is
 *   a note of that in this process: it tells
 *   other lines of the key when to try again.
 */
import { Effect, Fiber, Stream } from "effect"
import type { PortError, StorageError, StoredFile } from "../../../core/index.ts"
import type { BatchDeps } from "../deps.ts"
import { jsonLines } from "../input/json-lines.ts"
import type { BatchRow } from "../tables.ts"
import { countLines } from "./batch-metrics.ts"
import type { Cancellation } from "./cancellation.ts"
import { commitLines, voidLines } from "./commit.ts"
import { makeCommitBuffer } from "./commit-buffer.ts"
import type { HoldTracker } from "./hold-tracker.ts"
import { type AnsweredLine, type LineResources, startLine } from "./line-run.ts"
import type { LineScheduler } from "./line-scheduler.ts"
import { commitThroughOutage, type OutageWait, throughOutage } from "./outage.ts"
import { makeProgress, type Progress } from "./progress.ts"
import { answeredLines } from "./results.ts"
import { type LineDeps, runLine } from "./run-line.ts"
import { writeSegment } from "./segments.ts"

/** A batch that this worker has a lease of. */
export interface ClaimedBatch {
  readonly deps: BatchDeps
  readonly scheduler: LineScheduler
  /**
   * Serializes segments over all batches of this process, as each takes a page of answers in
   * memory.
   */
  readonly oneSegment: <A, E>(write: Effect.Effect<A, E>) => Effect.Effect<A, E>
  /** The tracker of the batch's key. */
  readonly holds: HoldTracker
  readonly cancellation: Cancellation
  readonly row: BatchRow
}

interface BatchRun extends ClaimedBatch, LineResources {
  readonly lineDeps: LineDeps
  readonly progress: Progress
}

const bufferOptions = {
  maxItems: 64,
  maxBytes: 4_194_304,
  lingerMs: 400,
  bytesOf: ({ result }: AnsweredLine) => result.body.length,
}
const progressOptions = { segmentBytes: 8_388_608, segmentLines: 4_096, maxLines: 8_192 }

/** Starts one line after the other, as the scheduler admits them. */
const dispatch = (run: BatchRun, input: StoredFile): Effect.Effect<void, StorageError> =>
  Effect.gen(function* () {
    const { deps, row, buffer, progress, lineDeps } = run
    const tenant = `${row.mode} ${row.account}`
    const answered = yield* answeredLines(deps, row.id)
    const offset = Number(row.done_offset)
    const lines = jsonLines(deps.files.read(input, { from: offset }), {
      maxLineBytes: deps.limits.maxLineBytes,
      from: { line: row.done_through + 1, offset },
    })
    yield* Stream.runForEach(lines, (raw) =>
      Effect.gen(function* () {
        yield* progress.capacity
        progress.passed(raw.line, raw.end)
        const bytes = answered.get(raw.line)
        if (bytes === undefined)
          yield* startLine(run, { tenant, bytes: raw.end - raw.offset }, (access) =>
            runLine(lineDeps, raw, access),
          )
        else {
          progress.done(raw.line, bytes)
          if (progress.completed) buffer.flush()
        }
      }),
    )
  })

const releaseAll = (lines: readonly AnsweredLine[]): Effect.Effect<void> =>
  Effect.sync(() => {
    for (const line of lines) line.release()
  })

/** Waits in `sleep` while there is an outage, unless another worker has the batch. */
const waitOf = ({ deps, row, cancellation }: BatchRun, sleep: OutageWait["sleep"]): OutageWait => ({
  deps,
  batch: row.id,
  isOver: () => cancellation.reason === "lost",
  sleep,
})

/** Commits the lines, or voids what they cost; releases them in any case. */
const commit = (
  { deps, row, cancellation, progress }: BatchRun,
  lines: readonly AnsweredLine[],
  committing: typeof commitLines,
): Effect.Effect<void, PortError> =>
  Effect.gen(function* () {
    if (lines.length === 0) return
    const results = lines.map(({ result }) => result)
    const committed = yield* Effect.onError(committing(deps, row, results), () =>
      voidLines(deps, results),
    )
    if (committed === "lost") yield* voidLines(deps, results)
    if (committed === "kept") {
      for (const { line, body } of results) progress.done(line, body.length)
      countLines(deps, results)
    } else cancellation.cancel(committed === "lost" ? "lost" : "cancelled")
  }).pipe(Effect.ensuring(releaseAll(lines)))

const segmentIfWorth = (run: BatchRun): Effect.Effect<void, StorageError> =>
  Effect.suspend(() => {
    const { deps, row, cancellation, progress, oneSegment } = run
    const { completed } = progress
    if (!completed || cancellation.reason) return Effect.void
    const wait = waitOf(run, Effect.sleep)
    return Effect.map(
      throughOutage(wait, oneSegment(writeSegment(deps, row, completed))),
      (isWritten) => isWritten && progress.forget(completed),
    )
  })

/** Commits answered lines until no further one can come, or another worker has the batch. */
const collect = (run: BatchRun): Effect.Effect<void, StorageError> =>
  Effect.gen(function* () {
    const { buffer, cancellation } = run
    const turn = Effect.uninterruptibleMask((restore) =>
      Effect.flatMap(restore(buffer.ready), () => {
        const { items, isOver } = buffer.take()
        const wait = waitOf(run, (ms) => restore(Effect.sleep(ms)))
        const committing: typeof commitLines = (_, lease, results) =>
          commitThroughOutage(wait, lease, results)
        return Effect.as(commit(run, items, committing), isOver)
      }),
    )
    for (let isOver = false; !isOver && cancellation.reason !== "lost"; ) {
      isOver = yield* turn
      yield* segmentIfWorth(run)
    }
  })

/**
 * Interrupts the lines that run, and commits those that are answered; without the lease they are
 * voided.
 */
const windUp = (run: BatchRun): Effect.Effect<void> =>
  Effect.gen(function* () {
    yield* Fiber.interruptAll([...run.fibers])
    const lines = run.buffer.drain()
    if (run.cancellation.reason !== "lost")
      return yield* Effect.ignore(commit(run, lines, commitLines))
    const results = lines.map(({ result }) => result)
    yield* Effect.ensuring(voidLines(run.deps, results), releaseAll(lines))
  })

/**
 * Runs the lines that have no answer. Ends when all are committed, or when it is cancelled and
 * those that ran are committed.
 */
export const runBatch = (
  batch: ClaimedBatch,
  input: StoredFile,
  lineDeps: LineDeps,
): Effect.Effect<void, StorageError> =>
  Effect.gen(function* () {
    const run: BatchRun = {
      ...batch,
      lineDeps,
      buffer: makeCommitBuffer(bufferOptions),
      progress: makeProgress(progressOptions),
      fibers: new Set(),
    }
    // where the input can't be read on, the lines in flight still end
    const dispatching = Effect.exit(batch.cancellation.during(dispatch(run, input))).pipe(
      Effect.ensuring(Effect.sync(run.buffer.close)),
    )
    const [read] = yield* Effect.all([dispatching, collect(run)], { concurrency: 2 }).pipe(
      Effect.ensuring(windUp(run)),
    )
    yield* read
  })
