import { Effect, Schedule } from "effect"
import type { Clock, Database, Job, Log, Metrics, Queue } from "../../core/index.ts"
import { makePayloadRows } from "./payload-rows.ts"
import { type Consumer, encodePayload, makeRunner } from "./run.ts"
import { makeWorker } from "./worker.ts"

export const maxPayloadLength = 1_000_000

export interface QueueParts {
  readonly database: Database
  readonly clock: Clock
  readonly log: Log
  readonly metrics: Metrics
  readonly random: () => number
  readonly wake: () => void
  readonly reporting?: Schedule.Schedule<unknown>
}

const patiently = Schedule.exponential("200 millis").pipe(
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
  return {
    ended: (job: string, outcome: string) => {
      runs.add(1, { job, outcome })
      if (outcome === "dead") dead.add(1, { job })
    },
    died: (job: string, payloads: number) => {
      if (payloads > 0) dead.add(payloads, { job })
    },
    looked: ({ job, running: now }: Consumer, lagMs: number) => {
      running.set(now.size, { job: job.name })
      lag.set(lagMs / 1000, { job: job.name })
    },
  }
}

/** The queue of one process, and the worker that somebody has to drive. */
export const makeQueue = ({
  database,
  clock,
  log,
  metrics,
  random,
  wake,
  reporting = patiently,
}: QueueParts) => {
  const rows = makePayloadRows(database, clock)
  const meters = makeMeters(metrics)
  const perform = makeRunner({ rows, clock, log, random, reporting, count: meters.ended })
  const onDead = (job: string, payloads: number) => {
    if (payloads > 0)
      log.error("payloads lost their worker for the last time; they lie in queue_dead_letter", {
        job,
        payloads,
      })
    meters.died(job, payloads)
  }
  const worker = makeWorker({ rows, clock, perform, wake, onDead, onLook: meters.looked })
  const queue: Queue = {
    send: (job, payload, { key, delayMs = 0, priority = 0 } = {}, tx) =>
      Effect.gen(function* () {
        const text = yield* encodePayload(job, payload, maxPayloadLength)
        yield* rows.insert({ job: job.name, payload: text, key, priority, delayMs }, tx)
        if (worker.consumes(job.name)) wake()
      }),
    held: ({ name }, keys) =>
      keys.length === 0 ? Effect.succeed(new Set<string>()) : rows.held(name, keys),
    consume: <P>(job: Job<P>) =>
      Effect.acquireRelease(
        Effect.sync(() => {
          const consumer: Consumer = {
            job: job as unknown as Job<unknown>,
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
