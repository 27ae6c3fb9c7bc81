import { Effect, Schema } from "effect"
import { PortError } from "../../core/errors.ts"
import type { Json } from "../../core/json.ts"
import type { JobHandler, Queue } from "../../core/ports/queue.ts"
import { type FakeClock, fakeClock } from "./clock.ts"
import { makeEntries } from "./queue/entries.ts"
import { type Consumer, makeProcess, type Process } from "./queue/process.ts"
import { whenCommitted } from "./transaction.ts"

export interface QueuedJob {
  readonly handler: string
  /** Encoded. */
  readonly job: Json
  readonly dueMs: number
  readonly attempts: number
  /** Of the last run that failed. */
  readonly error: string | undefined
}

export interface FakeQueue extends Queue {
  readonly clock: FakeClock
  readonly waiting: readonly QueuedJob[]
  readonly running: readonly QueuedJob[]
  readonly dead: readonly QueuedJob[]
  /** Moves the clock, begins what is due, and lets it go as far as it can without waiting. With 0 after the clock was moved by other hands. */
  advance(ms: number): Effect.Effect<void>
  /** Another process on the same jobs. */
  readonly other: Queue
  /** This process keeps running, but it renews, takes and reports nothing any more, as if its network were gone. */
  cutOff(): void
}

const encode = <Job>(handler: JobHandler<Job>, job: Job): Effect.Effect<Json, PortError> =>
  Schema.encodeEffect(handler.codec)(job).pipe(
    Effect.map((encoded) => JSON.parse(JSON.stringify(encoded)) as Json),
    Effect.mapError(
      (cause) =>
        new PortError({
          port: "queue",
          message: `The job does not fit the handler ${handler.name}: ${cause.message}`,
          cause,
        }),
    ),
  )

/** A turn of the event loop, so that runs get past what is ready. */
const turn = Effect.promise(() => new Promise<void>((done) => setImmediate(done)))

/** Runs what it is asked for, not again what it is running: a run that ends at once asks for the next. */
const once = (work: () => void): (() => void) => {
  let isRunning = false
  let isWanted = false
  return () => {
    isWanted = true
    if (isRunning) return
    isRunning = true
    while (isWanted) {
      isWanted = false
      work()
    }
    isRunning = false
  }
}

/** A queue in memory, on a clock that only moves by hand. Two processes work on it; tests of one plugin use the first alone. */
export const fakeQueue = (clock: FakeClock = fakeClock()): FakeQueue => {
  const entries = makeEntries(clock)
  const processes: Process[] = []

  const look = once(() => {
    for (const process of processes) process.renew()
    entries.expire()
    for (const process of processes) process.dropLost()
    for (const process of processes) process.fill()
  })

  const queueOf = (process: Process): Queue => ({
    send: (handler, job, { key, delayMs = 0, priority = 0 } = {}, tx) =>
      Effect.map(encode(handler, job), (json) => {
        const entry = {
          handler: handler.name,
          job: json,
          key,
          priority,
          dueMs: clock.nowMs() + delayMs,
        }
        whenCommitted(tx, () => entries.add(entry), look)
      }),
    held: ({ name }, keys) =>
      Effect.sync(() => new Set(keys.filter((key) => entries.isHeld(name, key)))),
    consume: <Job>(handler: JobHandler<Job>) =>
      Effect.gen(function* () {
        const consumer: Consumer = {
          handler: handler as unknown as JobHandler<unknown>,
          context: yield* Effect.context<never>(),
          running: new Map(),
          isStopping: false,
        }
        yield* Effect.addFinalizer(() => Effect.andThen(process.stop(consumer), Effect.sync(look)))
        process.add(consumer)
      }),
  })

  const first = makeProcess(entries, look)
  const second = makeProcess(entries, look)
  processes.push(first, second)

  return {
    ...queueOf(first),
    clock,
    other: queueOf(second),
    get waiting() {
      return entries.of("waiting")
    },
    get running() {
      return entries.of("leased")
    },
    get dead() {
      return entries.of("dead")
    },
    advance: (ms) =>
      Effect.andThen(
        Effect.sync(() => {
          clock.advance(ms)
          look()
        }),
        turn,
      ),
    cutOff: () => first.cutOff(),
  }
}
