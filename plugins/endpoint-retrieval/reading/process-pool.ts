import { Effect, type Scope, Semaphore } from "effect"
import { type ProcessLimits, type ReaderProcess, startReaderProcess } from "./reader-process.ts"

const idleMs = 60_000

/**
 * Lends up to `processes` of them, each for a scope. They are started when they are needed, and
 * ended when they were not for a while.
 */
export const makeProcessPool = (
  processes: number,
  limits: ProcessLimits,
): Effect.Effect<Effect.Effect<ReaderProcess, never, Scope.Scope>, never, Scope.Scope> =>
  Effect.gen(function* () {
    const permits = Semaphore.makeUnsafe(processes)
    const idle = new Map<ReaderProcess, NodeJS.Timeout>()
    const leave = (process: ReaderProcess) => {
      clearTimeout(idle.get(process))
      idle.delete(process)
    }
    const end = (process: ReaderProcess) => {
      leave(process)
      process.kill()
    }
    yield* Effect.addFinalizer(() => Effect.sync(() => [...idle.keys()].forEach(end)))
    const start = (): ReaderProcess => {
      const [found] = idle.keys()
      if (found === undefined) return startReaderProcess(limits)
      if (found.isReusable()) {
        leave(found)
        return found
      }
      end(found)
      return start()
    }
    const giveBack = (process: ReaderProcess) => {
      if (process.isReusable()) idle.set(process, setTimeout(end, idleMs, process).unref())
      else process.kill()
    }
    const lend = Effect.acquireRelease(Effect.sync(start), (process) =>
      Effect.andThen(
        Effect.sync(() => giveBack(process)),
        permits.release(1),
      ),
    )
    return Effect.uninterruptibleMask((restore) => Effect.andThen(restore(permits.take(1)), lend))
  })
