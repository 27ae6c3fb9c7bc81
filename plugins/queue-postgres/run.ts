import { Cause, Effect, Exit, type Fiber, type Schedule, Schema } from "effect"
import { type Clock, type Job, type Json, type Log, PortError } from "../../core/index.ts"
import { backoffMs } from "./backoff.ts"
import type { Claimed, PayloadRows } from "./payload-rows.ts"

/** One payload that is being run here. */
export interface Run {
  readonly claimed: Claimed
  /** Until then it is ours, unless the lease is renewed. */
  untilMs: number
  isLost: boolean
  /** Not known yet while it runs its first step. */
  fiber: Fiber.Fiber<void> | undefined
}

export interface Consumer {
  readonly job: Job<unknown>
  readonly running: Set<Run>
  isStopping: boolean
}

export type Outcome = "done" | "failed" | "dead" | "released" | "lost"

export interface RunParts {
  readonly rows: PayloadRows
  readonly clock: Clock
  readonly log: Log
  readonly random: () => number
  /** How often, and after which waits, an outcome that could not be written down is written again. */
  readonly reporting: Schedule.Schedule<unknown>
  readonly count: (job: string, outcome: Outcome) => void
}

export const encodePayload = <P>(
  job: Job<P>,
  payload: P,
  maxLength: number,
): Effect.Effect<string, PortError> =>
  Schema.encodeEffect(job.payload)(payload).pipe(
    Effect.mapError(
      (cause) =>
        new PortError({
          port: "queue",
          message: `The payload does not fit the job ${job.name}: ${cause.message}`,
          cause,
        }),
    ),
    Effect.flatMap((encoded) => {
      const text = JSON.stringify(encoded) ?? "null"
      if (text.length <= maxLength) return Effect.succeed(text)
      return Effect.fail(
        new PortError({
          port: "queue",
          message: `A payload of the job ${job.name} has ${text.length} characters; ${maxLength} are allowed.`,
        }),
      )
    }),
  )

const work = (job: Job<unknown>, { payload }: Claimed): Effect.Effect<void, unknown> =>
  Effect.suspend(() => Schema.decodeUnknownEffect(job.payload)(JSON.parse(payload) as Json)).pipe(
    Effect.flatMap((decoded) => job.run(decoded)),
  )

export const makeRunner = ({ rows, clock, log, random, reporting, count }: RunParts) => {
  const buried = (job: string, claimed: Claimed, error: string) =>
    Effect.map(rows.bury(claimed, error), (dead): Outcome => {
      if (dead === 0) return "lost"
      log.error("a payload failed for the last time; it lies in queue_dead_letter", {
        job,
        id: claimed.id,
        attempts: claimed.attempts,
        error,
      })
      return "dead"
    })

  const failed = (
    { name, attempts }: Job<unknown>,
    claimed: Claimed,
    error: string,
  ): Effect.Effect<Outcome, PortError> => {
    if (claimed.attempts >= attempts) return buried(name, claimed, error)
    log.debug("a payload failed and is tried again", {
      job: name,
      id: claimed.id,
      attempts: claimed.attempts,
      error,
    })
    return Effect.map(rows.retry(claimed, error, backoffMs(claimed.attempts, random)), (isOurs) =>
      isOurs ? "failed" : "lost",
    )
  }

  const written = (
    { job, isStopping }: Consumer,
    { claimed, isLost }: Run,
    exit: Exit.Exit<void, unknown>,
  ): Effect.Effect<Outcome, PortError> => {
    if (isLost) return Effect.succeed("lost")
    if (Exit.isSuccess(exit)) return Effect.as(rows.done(claimed), "done")
    if (isStopping && Cause.hasInterruptsOnly(exit.cause))
      return Effect.as(rows.release(claimed), "released")
    return failed(job, claimed, Cause.pretty(exit.cause))
  }

  const report = (
    consumer: Consumer,
    run: Run,
    exit: Exit.Exit<void, unknown>,
  ): Effect.Effect<void> =>
    Effect.suspend(() => written(consumer, run, exit)).pipe(
      // what can't be written in time ends with its lease, and is run again
      Effect.retry({
        schedule: reporting,
        while: () => !run.isLost && clock.nowMs() < run.untilMs,
      }),
      Effect.map((outcome) => count(consumer.job.name, outcome)),
      Effect.catch((error) =>
        Effect.sync(() =>
          log.warn("the outcome of a payload could not be written down; it will be run again", {
            job: consumer.job.name,
            error: error.message,
          }),
        ),
      ),
    )

  /** Runs it and writes down how it ended. Interruption ends the run, not the writing. */
  return (consumer: Consumer, run: Run): Effect.Effect<void> =>
    Effect.uninterruptibleMask((restore) =>
      restore(work(consumer.job, run.claimed)).pipe(
        Effect.onExit((exit) => report(consumer, run, exit)),
        Effect.catchCause(() => Effect.void),
      ),
    )
}
