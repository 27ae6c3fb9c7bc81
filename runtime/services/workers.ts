import { createRequire } from "node:module"
import { pathToFileURL } from "node:url"
import { Effect, Exit, type Scope, Semaphore } from "effect"
import { Piscina } from "piscina"
import { PortError } from "../../core/errors.ts"
import type { Workers } from "../../core/services/workers.ts"

export interface WorkersOptions {
  /**
   * Maximum number of threads for tasks with a limit, and for those without. Each is started when
   * it is first needed, and then kept with the state of its modules.
   */
  readonly threads: number
  /** Maximum number of waiting tasks; one more fails with a `PortError` whose `why` is busy. */
  readonly maxQueue?: number
  /** How long a task whose caller was interrupted may go on before its thread is terminated. */
  readonly abandonedMs?: number
}

/** Only TypeScript sources need a loader in the thread. */
const loaderArguments = (): string[] =>
  isTypeScript(import.meta.url)
    ? ["--import", pathToFileURL(createRequire(import.meta.url).resolve("tsx")).href]
    : []

const isTypeScript = (path: string) => /\.m?ts$/.test(path)

/**
 * Under the compiled server, a plugin's TypeScript module is run by typescript-job.ts, which
 * registers the loader.
 */
const taskOf = (
  module: URL,
  input: unknown,
): { readonly filename: string; readonly input: unknown } =>
  isTypeScript(module.pathname) && !isTypeScript(import.meta.url)
    ? {
        filename: new URL("./typescript-job.js", import.meta.url).href,
        input: { module: module.href, input },
      }
    : { filename: module.href, input }

const failure = (cause: unknown) =>
  new PortError({
    port: "workers",
    message: cause instanceof Error ? cause.message : String(cause),
    cause,
  })

const within = <A>(
  result: Effect.Effect<A, PortError>,
  limitMs: number,
  abandon: Effect.Effect<void>,
): Effect.Effect<A, PortError> => {
  if (limitMs === Number.POSITIVE_INFINITY) return result
  const slow = new PortError({
    port: "workers",
    message: `the task ran for more than ${limitMs} ms`,
    why: "slow",
  })
  return Effect.timeoutOrElse(result, {
    duration: limitMs,
    orElse: () => Effect.andThen(abandon, Effect.fail(slow)),
  })
}

/**
 * Threads for one kind of task. Tasks wait here for a thread, not in piscina, where aborting a
 * running task kills its thread and with it the loaded tokenizers. An interrupted caller returns at
 * once; its task is terminated only after `abandonedMs`.
 */
const makePool = ({
  threads,
  maxQueue = 1024,
  abandonedMs = 5_000,
}: WorkersOptions): Effect.Effect<Workers, never, Scope.Scope> =>
  Effect.gen(function* () {
    const pool = yield* Effect.acquireRelease(
      Effect.sync(
        () =>
          new Piscina({
            minThreads: 0,
            maxThreads: threads,
            idleTimeout: Number.POSITIVE_INFINITY,
            maxQueue: threads,
            execArgv: loaderArguments(),
          }),
      ),
      (p) => Effect.promise(() => p.destroy()),
    )
    const slots = Semaphore.makeUnsafe(threads)
    let waiting = 0
    const launch = (module: URL, given: unknown) => {
      const abort = new AbortController()
      let timer: NodeJS.Timeout | undefined
      const { filename, input } = taskOf(module, given)
      const ended = pool
        .run(input, { filename, signal: abort.signal })
        .then(Exit.succeed, (cause: unknown) => Exit.fail(failure(cause)))
      void ended.then(() => {
        clearTimeout(timer)
        Effect.runFork(slots.release(1))
      })
      const abandon = Effect.sync(() => {
        timer = setTimeout(() => abort.abort(), abandonedMs).unref()
      })
      return {
        result: Effect.flatMap(
          Effect.promise(() => ended),
          (exit) => exit,
        ),
        abandon,
      }
    }
    const takeSlot = Effect.suspend(() => {
      if (waiting >= maxQueue)
        return Effect.fail(
          new PortError({
            port: "workers",
            message: `${maxQueue} tasks are waiting already`,
            why: "busy",
          }),
        )
      waiting++
      return Effect.ensuring(
        slots.take(1),
        Effect.sync(() => {
          waiting--
        }),
      )
    })
    const run = (module: URL, input: unknown, limitMs = Number.POSITIVE_INFINITY) =>
      Effect.uninterruptibleMask((restore) =>
        restore(takeSlot).pipe(
          Effect.andThen(Effect.sync(() => launch(module, input))),
          Effect.flatMap(({ result, abandon }) =>
            restore(within(result, limitMs, abandon)).pipe(Effect.onInterrupt(() => abandon)),
          ),
        ),
      )
    return { run: run as Workers["run"] }
  })

/**
 * Tasks with a limit may take seconds each, and those without take milliseconds: each kind has
 * threads of its own, so that nobody's tokenization waits for somebody's schema.
 */
export const makeWorkers = (options: WorkersOptions): Effect.Effect<Workers, never, Scope.Scope> =>
  Effect.gen(function* () {
    const short = yield* makePool(options)
    const limited = yield* makePool(options)
    return {
      run: (module, input, limitMs) =>
        (limitMs === undefined ? short : limited).run(module, input, limitMs),
    }
  })
