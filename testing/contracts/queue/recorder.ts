import { Deferred, Effect, Exit, Schema } from "effect"
import type { PortError } from "../../../core/errors.ts"
import type { JobHandler } from "../../../core/ports/queue.ts"
import type { OpenedQueue } from "../queue.ts"

/** The longest wait before a retry that the contract allows. */
export const longestBackoffMs = 600_000

export interface Recorder {
  readonly handler: JobHandler<string>
  /** One entry per run, the oldest first. */
  readonly began: readonly string[]
  readonly succeeded: readonly string[]
  readonly interrupted: readonly string[]
  /** The highest number of concurrent runs. */
  readonly most: number
}

type Behaviour = (job: string, nthRun: number) => Effect.Effect<void, PortError>

const defaults = { name: "job", concurrency: 1, leaseMs: 30_000, attempts: 3 }

/** A handler of texts that records its runs. */
export const record = (
  options: Partial<typeof defaults> = {},
  behave: Behaviour = () => Effect.void,
): Recorder => {
  const began: string[] = []
  const succeeded: string[] = []
  const interrupted: string[] = []
  let running = 0
  let most = 0
  const run = (job: string) =>
    Effect.suspend(() => {
      began.push(job)
      most = Math.max(most, ++running)
      return behave(job, began.filter((text) => text === job).length)
    }).pipe(
      Effect.onInterrupt(() => Effect.sync(() => void interrupted.push(job))),
      Effect.onExit((exit) =>
        Effect.sync(() => {
          running--
          if (Exit.isSuccess(exit)) succeeded.push(job)
        }),
      ),
    )
  return {
    handler: { ...defaults, ...options, codec: Schema.String, run },
    began,
    succeeded,
    interrupted,
    get most() {
      return most
    },
  }
}

/** Runs that wait until they are released. */
export const makeGate = () => {
  const opened = Deferred.makeUnsafe<void>()
  return { pass: Deferred.await(opened), open: Deferred.succeed(opened, undefined) }
}

/** Repeats the assertions while the queue polls; the last failure is thrown. */
export const eventually = (
  { advance }: OpenedQueue,
  assertion: () => void,
  tries = 400,
): Effect.Effect<void> =>
  Effect.suspend(() => {
    try {
      assertion()
      return Effect.void
    } catch (failure) {
      if (tries === 0) throw failure
      return Effect.andThen(
        advance(0),
        Effect.suspend(() => eventually({ advance } as OpenedQueue, assertion, tries - 1)),
      )
    }
  })
