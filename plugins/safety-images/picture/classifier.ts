import { Effect, type Scope } from "effect"
import type { PortError } from "../../../core/errors.ts"
import type { Workers } from "../../../core/services/workers.ts"
import type { Classes } from "./classes.ts"
import type { ClassifyInput } from "./classify-job.ts"
import { endCalls, newCallCount } from "./native-calls.ts"

const isSource = import.meta.url.endsWith(".ts")
const job = new URL(isSource ? "./classify-job.ts" : "./classify-job.js", import.meta.url)

const endMs = 5_000

export interface Classifier {
  /** The classes of a PNG file. */
  classify(bytes: Uint8Array): Effect.Effect<Classes, PortError>
}

/** The classifier in the threads of the pool: no thread of it is in a call when the scope ends. */
export const makeClassifier = (workers: Workers): Effect.Effect<Classifier, never, Scope.Scope> =>
  Effect.gen(function* () {
    const calls = newCallCount()
    const end = (): void => endCalls(calls, endMs)
    // an exit that closes no scope terminates threads, too
    yield* Effect.acquireRelease(
      Effect.sync(() => void process.on("exit", end)),
      () =>
        Effect.sync(() => {
          process.off("exit", end)
          end()
        }),
    )
    return {
      // a thread that is terminated inside a native call takes the process with it, so neither a
      // client that left nor a limit ends one; reading the picture has a limit of its own
      classify: (bytes) =>
        Effect.uninterruptible(
          workers.run<ClassifyInput, Classes>(job, { bytes, calls }, Number.POSITIVE_INFINITY),
        ),
    }
  })
