import { Cause, Effect, Exit, type Fiber, type Schedule, Schema } from "effect"
import { type Clock, type JobHandler, type Json, type Log, PortError } from "../../core/index.ts"
import { backoffMs } from "./backoff.ts"
import type { ClaimedJob, JobRows } from "./job-rows.ts"

/** A job that this process is running. */
export interface JobRun {
  readonly claimed: ClaimedJob
  /** When the lease ends, in Unix ms, unless it is renewed. */
  untilMs: number
  isLost: boolean
  /** Undefined during its first synchronous step. */
  fiber: Fiber.Fiber<void> | undefined
}

export interface Consumer {
  readonly handler: JobHandler<unknown>
  readonly running: Set<JobRun>
  isStopping: boolean
}

export type Outcome = "done" | "failed" | "dead" | "released" | "lost"

export interface RunnerDeps {
  readonly rows: JobRows
  readonly clock: Clock
  readonly log: Log
  readonly random: () => number
  /** The retries of a failed write of an outcome. */
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

const decodeAndRun = (
  handler: JobHandler<unknown>,
  { payload }: ClaimedJob,
): Effect.Effect<void, unknown> =>
  Effect.suspend(() => Schema.decodeUnknownEffect(handler.codec)(JSON.parse(payload) as Json)).pipe(
    Effect.flatMap((decoded) => handler.run(decoded)),
  )

/** Writes how runs end. Each write returns "lost" when the lease is no longer ours. */
const makeOutcomes = ({ rows, log, random }: RunnerDeps) => {
  const bury = (handler: string, claimed: ClaimedJob, error: string) =>
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

  const fail = (
    { name, attempts }: JobHandler<unknown>,
    claimed: ClaimedJob,
    error: string,
  ): Effect.Effect<Outcome, PortError> => {
    if (claimed.attempts >= attempts) return bury(name, claimed, error)
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

  return (
    { handler, isStopping }: Consumer,
    { claimed, isLost }: JobRun,
    exit: Exit.Exit<void, unknown>,
  ): Effect.Effect<Outcome, PortError> => {
    if (isLost) return Effect.succeed("lost")
    if (Exit.isSuccess(exit)) return Effect.as(rows.done(claimed), "done")
    if (isStopping && Cause.hasInterruptsOnly(exit.cause))
      return Effect.as(rows.release(claimed), "released")
    return fail(handler, claimed, Cause.pretty(exit.cause))
  }
}

export const makeRunner = (deps: RunnerDeps) => {
  const { clock, log, reporting, count } = deps
  const write = makeOutcomes(deps)
  const report = (
    consumer: Consumer,
    run: JobRun,
    exit: Exit.Exit<void, unknown>,
  ): Effect.Effect<void> =>
    Effect.suspend(() => write(consumer, run, exit)).pipe(
      // an outcome that can't be written in time ends with its lease, and the job is run again
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

  /** Runs the job and writes its outcome. Interruption ends the run, not the writing. */
  return (consumer: Consumer, run: JobRun): Effect.Effect<void> =>
    Effect.uninterruptibleMask((restore) =>
      restore(decodeAndRun(consumer.handler, run.claimed)).pipe(
        Effect.onExit((exit) => report(consumer, run, exit)),
        Effect.catchCause(() => Effect.void),
      ),
    )
}
