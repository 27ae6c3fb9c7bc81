import { Effect, Option } from "effect"
import type { StorageError } from "../../../core/index.ts"
import { noEndpoint, preflight } from "../preflight/preflight.ts"
import { fileGone } from "../preflight/scan.ts"
import type { BatchError } from "../tables.ts"
import { type Ending, finish } from "./finish.ts"
import { beginLines, heartbeat, releaseLease } from "./lease.ts"
import { type ClaimedBatch, runBatch } from "./run-batch.ts"
import { dropEnded, dropResults } from "./sweep.ts"

const resultsLost = (): BatchError => ({
  code: "internal_error",
  message: "Answers of this batch were lost on our side.",
  line: null,
  param: null,
})

const failed = (error: BatchError): Ending => ({ status: "failed", errors: [error] })

/** The batch after pre-flight, in progress. Undefined: it has failed or was cancelled. */
const validated = (batch: ClaimedBatch) =>
  Effect.gen(function* () {
    const { deps, row, cancellation } = batch
    if (row.status !== "validating") return batch
    const found = yield* cancellation.during(preflight(deps, row))
    if (Option.isNone(found)) return undefined
    if ("errors" in found.value) {
      yield* finish(deps, row, { status: "failed", errors: found.value.errors })
      return undefined
    }
    const begun = yield* beginLines(deps, row, found.value)
    return begun && { ...batch, row: begun }
  })

/** Runs the lines. Undefined: the batch was cancelled meanwhile. */
const runLines = (batch: ClaimedBatch): Effect.Effect<Ending | undefined, StorageError> =>
  Effect.gen(function* () {
    const { deps, row, cancellation } = batch
    const target = deps.targets.get(row.endpoint)
    if (!target) return failed(noEndpoint())
    const input = yield* deps.files.find(
      { account: row.account, mode: row.mode },
      row.input_file_id,
    )
    if (!input) return failed(fileGone())
    const lineDeps = { deps, batch: row, target, cancellation, random: Math.random }
    const isRead = yield* runBatch(batch, input, lineDeps).pipe(
      Effect.as(true),
      Effect.catchTag("BlobMissing", () => Effect.succeed(false)),
    )
    if (cancellation.reason) return undefined
    return isRead ? { status: "completed" } : failed(fileGone())
  })

/** Fails the batch, without files, where answers are missing in the store. */
const finishOrFail = ({ deps, row }: ClaimedBatch, ending: Ending) =>
  Effect.catchTag(finish(deps, row, ending), "BlobMissing", () =>
    finish(deps, row, failed(resultsLost()), false),
  )

const runToEnd = (batch: ClaimedBatch): Effect.Effect<void, StorageError> =>
  Effect.gen(function* () {
    const { deps, row, cancellation } = batch
    if (deps.clock.nowMs() >= row.deadline_at.getTime()) cancellation.cancel("expired")
    const ready = yield* validated(batch)
    const ending = ready && !cancellation.reason ? yield* runLines(ready) : undefined
    const last: Ending | undefined =
      ending ?? (cancellation.reason === "expired" ? { status: "expired" } : undefined)
    if (last) {
      const ended = yield* finishOrFail(batch, last)
      // it was cancelled in that moment
      if (!ended) yield* dropEnded(deps)
    } else if (cancellation.reason === "cancelled") yield* dropResults(deps, row.id)
  })

/**
 * Takes a claimed batch to its end, or until another worker goes on: at once after an interruption
 * or when it is yielded,
 * and when the lease has run out after a failure.
 */
export const runClaimed = (batch: ClaimedBatch): Effect.Effect<void, StorageError> => {
  const { deps, row, cancellation } = batch
  const release = Effect.ignore(releaseLease(deps, row))
  const subscribed = Effect.acquireRelease(
    Effect.sync(() => deps.cancels.subscribe(row.id, () => cancellation.cancel("cancelled"))),
    (unsubscribe) => Effect.sync(unsubscribe),
  )
  const heart = Effect.forkScoped(heartbeat(deps, row, cancellation))
  // the scope stops the heartbeat before the lease is released
  return Effect.scoped(Effect.andThen(subscribed, Effect.andThen(heart, runToEnd(batch)))).pipe(
    Effect.onInterrupt(() => release),
    Effect.andThen(
      Effect.suspend(() => (cancellation.reason === "yielded" ? release : Effect.void)),
    ),
  )
}
