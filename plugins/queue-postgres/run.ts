import { Cause, Effect, Exit, type Fiber, type Schedule, Schema } from "effect"
import { type Clock, type JobHandler, type Json, type Log, PortError } from "../../core/index.ts"
import { backoffMs } from "./backoff.ts"
import type { ClaimedJob, JobRows } from "./job-rows.ts"

/** One job that is being run here. */
export interface Run {
  readonly claimed: ClaimedJob
  /** Until then it is ours, unless the lease is renewed. */
  untilMs: number
  isLost: boolean
  /** Not known yet while it runs its first step. */
  fiber: Fiber.Fiber<void> | undefined
}

export interface Consumer {
  readonly handler: JobHandler<unknown>
  readonly running: Set<Run>
  isStopping: boolean
}

export type Outcome = "done" | "failed" | "dead" | "released" | "lost"

export interface RunParts {
  readonly rows: JobRows
  readonly clock: Clock
  readonly log: Log
  readonly random: () => number
  /** How often, and after which waits, an outcome that could not be written down is written again. */
  readonly reporting: Schedule.Schedule<unknown>
  readonly count: (handler: string, outcome: Outcome) => void
}

export const encodeJob = <Job>(
  handler: JobHandler<Job>,
  job: Job,
  maxLength: number,
): Effect.Effect<string, PortError> =>
  Schema.encodeEffect(handler.codec)(job).pipe(
    Effect.mapError(
      (cause) =>
        new PortError({
          port: "queue",
          message: `The job does not fit the handler ${handler.name}: ${cause.message}`,
          cause,
        }),
    ),
    Effect.flatMap((encoded) => {
      const text = JSON.stringify(encoded) ?? "null"
      if (text.length <= maxLength) return Effect.succeed(text)
      return Effect.fail(
        new PortError({
          port: "queue",
          message: `A job of the handler ${handler.name} has ${text.length} characters; ${maxLength} are allowed.`,
        }),
      )
    }),
  )

const work = (
  handler: JobHandler<unknown>,
  { payload }: ClaimedJob,
): Effect.Effect<void, unknown> =>
  Effect.suspend(() => Schema.decodeUnknownEffect(handler.codec)(JSON.parse(payload) as Json)).pipe(
    Effect.flatMap((decoded) => handler.run(decoded)),
  )

export const makeRunner = ({ rows, clock, log, random, reporting, count }: RunParts) => {
  const buried = (handler: string, claimed: ClaimedJob, error: string) =>
    Effect.map(rows.bury(claimed, error), (dead): Outcome => {
      if (dead === 0) return "lost"
      log.error(
        "queue.job_given_up",
        "a job failed for the last time; it is in queue_dead_letter",
        {
          job: handler,
          id: claimed.id,
          attempts: claimed.attempts,
          error,
        },
      )
      return "dead"
    })

  const failed = (
    { name, attempts }: JobHandler<unknown>,
    claimed: ClaimedJob,
    error: string,
  ): Effect.Effect<Outcome, PortError> => {
    if (claimed.attempts >= attempts) return buried(name, claimed, error)
    log.debug("queue.job_failed", "a job failed and is tried again", {
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
    { handler, isStopping }: Consumer,
    { claimed, isLost }: Run,
    exit: Exit.Exit<void, unknown>,
  ): Effect.Effect<Outcome, PortError> => {
    if (isLost) return Effect.succeed("lost")
    if (Exit.isSuccess(exit)) return Effect.as(rows.done(claimed), "done")
    if (isStopping && Cause.hasInterruptsOnly(exit.cause))
      return Effect.as(rows.release(claimed), "released")
    return failed(handler, claimed, Cause.pretty(exit.cause))
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
      Effect.map((outcome) => count(consumer.handler.name, outcome)),
      Effect.catch((error) =>
        Effect.sync(() =>
          log.warn(
            "queue.outcome_not_stored",
            "the outcome of a job could not be written down; it will be run again",
            {
              job: consumer.handler.name,
              error: error.message,
            },
          ),
        ),
      ),
    )

  /** Runs it and writes down how it ended. Interruption ends the run, not the writing. */
  return (consumer: Consumer, run: Run): Effect.Effect<void> =>
    Effect.uninterruptibleMask((restore) =>
      restore(work(consumer.handler, run.claimed)).pipe(
        Effect.onExit((exit) => report(consumer, run, exit)),
        Effect.catchCause(() => Effect.void),
      ),
    )
}
