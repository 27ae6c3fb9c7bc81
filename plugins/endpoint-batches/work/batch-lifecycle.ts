import { Effect, Option } from "effect"
import type { StorageError } from "../../../core/index.ts"
import { noEndpoint, preflight } from "../preflight/preflight.ts"
import { fileGone } from "../preflight/scan.ts"
import type { BatchError } from "../tables.ts"
import { type Ending, finish } from "./finish.ts"
import { beginLines, releaseLease, renewLease } from "./lease.ts"
import { runLines, type Work } from "./run-batch.ts"
import { dropEnded, dropResults } from "./sweep.ts"

const longestBeatMs = 1_000

/** Keeps the lease, and notices what happens to the batch meanwhile. A database that does not answer is waited for until the lease is over. */
const heartbeat = ({ deps, row, stop }: Work): Effect.Effect<void> => {
  const { clock, limits, log } = deps
  let untilMs = clock.nowMs() + limits.leaseMs
  const beat = Effect.suspend(() => {
    if (clock.nowMs() >= row.deadline_at.getTime()) stop.tell("expired")
    const askedMs = clock.nowMs()
    return Effect.map(renewLease(deps, row), (now) => {
      untilMs = askedMs + limits.leaseMs
      if (!now) stop.tell("lost")
      else if (now.ended_at) stop.tell("cancelled")
    })
  }).pipe(
    Effect.catch((error) =>
      Effect.sync(() => {
        log.warn("batch.lease_renewal_failed", "the lease of a batch could not be renewed", {
          batch: row.id,
          reason: error.message,
        })
        if (clock.nowMs() >= untilMs) stop.tell("lost")
      }),
    ),
  )
  return Effect.forever(
    Effect.andThen(Effect.sleep(Math.min(longestBeatMs, limits.leaseMs / 3)), beat),
  )
}

const resultsLost = (): BatchError => ({
  code: "internal_error",
  message: "Answers of this batch were lost on our side.",
  line: null,
  param: null,
})

/** Undefined: it was stopped. */
const checked = (work: Work) =>
  Effect.gen(function* () {
    const { deps, row, stop } = work
    if (row.status !== "validating") return work
    const found = yield* stop.during(preflight(deps, row))
    if (Option.isNone(found)) return undefined
    if ("errors" in found.value) {
      yield* finish(deps, row, { status: "failed", errors: found.value.errors })
      return undefined
    }
    const begun = yield* beginLines(deps, row, found.value.total)
    return begun && { ...work, row: begun }
  })

const failed = (error: BatchError): Ending => ({ status: "failed", errors: [error] })

/** How it ended, where it did. */
const lines = (work: Work): Effect.Effect<Ending | undefined, StorageError> =>
  Effect.gen(function* () {
    const { deps, row, stop } = work
    const target = deps.targets.get(row.endpoint)
    if (!target) return failed(noEndpoint())
    const input = yield* deps.files.find(
      { account: row.account, mode: row.mode },
      row.input_file_id,
    )
    if (!input) return failed(fileGone())
    const hasRun = yield* runLines(work, input, {
      deps,
      batch: row,
      target,
      stop,
      random: Math.random,
    }).pipe(
      Effect.as(true),
      Effect.catchTag("BlobMissing", () => Effect.succeed(false)),
    )
    if (stop.reason) return undefined
    return hasRun ? { status: "completed" } : failed(fileGone())
  })

/** Only a disk that lost something gets here. */
const finishAnyhow = ({ deps, row }: Work, ending: Ending) =>
  Effect.catchTag(finish(deps, row, ending), "BlobMissing", () =>
    finish(deps, row, failed(resultsLost()), false),
  )

const wholeWork = (work: Work): Effect.Effect<void, StorageError> =>
  Effect.gen(function* () {
    const { deps, row, stop } = work
    if (deps.clock.nowMs() >= row.deadline_at.getTime()) stop.tell("expired")
    const ready = yield* checked(work)
    const ending = ready && !stop.reason ? yield* lines(ready) : undefined
    const last: Ending | undefined =
      ending ?? (stop.reason === "expired" ? { status: "expired" } : undefined)
    if (last) {
      const ended = yield* finishAnyhow(work, last)
      // cancelled in that moment
      if (!ended) yield* dropEnded(deps)
    } else if (stop.reason === "cancelled") yield* dropResults(deps, row.id)
  })

/** From the claim to the end, or to where somebody else goes on: interrupted, at once; after a failure, when the lease is over. */
export const workOn = (work: Work): Effect.Effect<void, StorageError> => {
  const { deps, row, stop } = work
  const release = Effect.ignore(releaseLease(deps, row))
  const listening = Effect.acquireRelease(
    Effect.sync(() => deps.cancels.listen(row.id, () => stop.tell("cancelled"))),
    (leave) => Effect.sync(leave),
  )
  // the heart stands still before the lease is given back
  return Effect.scoped(
    Effect.andThen(listening, Effect.andThen(Effect.forkScoped(heartbeat(work)), wholeWork(work))),
  ).pipe(
    Effect.onInterrupt(() => release),
    Effect.andThen(Effect.suspend(() => (stop.reason === "yielded" ? release : Effect.void))),
  )
}
