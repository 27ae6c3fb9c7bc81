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
  /** The encoded job. */
  readonly job: Json
  readonly dueMs: number
  readonly attempts: number
  /** The error of the last failed run. */
  readonly error: string | undefined
}

export interface FakeQueue extends Queue {
  readonly clock: FakeClock
  readonly waiting: readonly QueuedJob[]
  readonly running: readonly QueuedJob[]
  readonly dead: readonly QueuedJob[]
  /**
   * Moves the clock, starts what is due, and lets it run as far as it can without waiting. Call it
   * with 0 after the clock was moved elsewhere.
   */
  advance(ms: number): Effect.Effect<void>
  /** A second process that works on the same jobs. */
  readonly other: Queue
  /**
   * From now on this process can neither renew, take nor report, as if its network were down; its
   * runs go on.
   */
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

/** A turn of the event loop, so that ready fibers run. */
const turn = Effect.promise(() => new Promise<void>((done) => setImmediate(done)))

/** Coalesces calls: those during a run make it run once more at its end. */
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

/**
 * A queue in memory, on a fake clock. Two processes can work on it; most tests use only the first.
 */
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
