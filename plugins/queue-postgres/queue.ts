import { Effect, Schedule } from "effect"
import type { Clock, Database, JobHandler, Log, Metrics, Queue } from "../../core/index.ts"
import { makeJobRows } from "./job-rows.ts"
import { type Consumer, encodeJob, makeRunner } from "./run.ts"
import { makeWorker } from "./worker.ts"

export const maxJobLength = 1_000_000

export interface QueueDeps {
  readonly database: Database
  readonly clock: Clock
  readonly log: Log
  readonly metrics: Metrics
  readonly random: () => number
  readonly wake: () => void
  readonly reporting?: Schedule.Schedule<unknown>
}

const reportRetries = Schedule.exponential("200 millis").pipe(
  Schedule.jittered,
  Schedule.upTo({ times: 5 }),
)

const makeMeters = (metrics: Metrics) => {
  const runs = metrics.counter(
    "rakit_queue_runs_total",
    "Runs of background jobs that have ended.",
    ["job", "outcome"],
  )
  const dead = metrics.counter(
    "rakit_queue_dead_total",
    "Payloads that failed for the last time.",
    ["job"],
  )
  const running = metrics.gauge(
    "rakit_queue_running",
    "Runs of background jobs now, in this process.",
    ["job"],
  )
  const lag = metrics.gauge(
    "rakit_queue_lag_seconds",
    "How long the payload that is due longest has waited.",
    ["job"],
  )
  const depth = metrics.gauge(
    "rakit_queue_depth",
    "Payloads that are due and wait, counted up to 1,000, when the queue was last looked at.",
    ["job"],
  )
  return {
    ended: (handler: string, outcome: string) => {
      runs.add(1, { job: handler, outcome })
      if (outcome === "dead") dead.add(1, { job: handler })
    },
    died: (handler: string, jobs: number) => {
      if (jobs > 0) dead.add(jobs, { job: handler })
    },
    polled: ({ handler, running: now }: Consumer, lagMs: number, due: number) => {
      depth.set(due, { job: handler.name })
      running.set(now.size, { job: handler.name })
      lag.set(lagMs / 1000, { job: handler.name })
    },
  }
}

/** The queue of one process, and its worker, which `drive` runs. */
export const makeQueue = ({
  database,
  clock,
  log,
  metrics,
  random,
  wake,
  reporting = reportRetries,
}: QueueDeps) => {
  const rows = makeJobRows(database, clock)
  const meters = makeMeters(metrics)
  const perform = makeRunner({ rows, clock, log, random, reporting, count: meters.ended })
  const onDead = (handler: string, jobs: number) => {
    if (jobs > 0)
      log.error(
        "queue.job_lost",
        "jobs lost their worker for the last time; they are in queue_dead_letter",
        {
          job: handler,
          jobs,
        },
      )
    meters.died(handler, jobs)
  }
  const worker = makeWorker({ rows, clock, perform, wake, onDead, onPoll: meters.polled })
  const queue: Queue = {
    send: (handler, job, { key, delayMs = 0, priority = 0 } = {}, tx) =>
      Effect.gen(function* () {
        const text = yield* encodeJob(handler, job, maxJobLength)
        yield* rows.insert({ handler: handler.name, payload: text, key, priority, delayMs }, tx)
        if (worker.consumes(handler.name)) wake()
      }),
    held: ({ name }, keys) =>
      keys.length === 0 ? Effect.succeed(new Set<string>()) : rows.held(name, keys),
    consume: <Job>(handler: JobHandler<Job>) =>
      Effect.acquireRelease(
        Effect.sync(() => {
          const consumer: Consumer = {
            handler: handler as unknown as JobHandler<unknown>,
            running: new Set(),
            isStopping: false,
          }
          worker.add(consumer)
          return consumer
        }),
        worker.stop,
      ).pipe(Effect.asVoid),
  }
  return { queue, worker, rows }
}
