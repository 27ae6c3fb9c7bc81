import { Effect, Schedule, type Scope } from "effect"
import type { PluginError } from "../../../core/errors.ts"
import type { Log } from "../../../core/services/log.ts"
import type { PidFile } from "./pid-file.ts"
import { isAlive } from "./process-list.ts"

const pollEvery = "250 millis"
const backoff = Schedule.min([Schedule.exponential("250 millis"), Schedule.spaced("5 seconds")])

/** Polls the pid, as an adopted server is no child of this process. */
const untilDead = (pid: number) =>
  Effect.gen(function* () {
    while (isAlive(pid)) yield* Effect.sleep(pollEvery)
  })

/**
 * Starts the server again whenever it dies, until the Scope closes. States: running -> dead ->
 * (after a growing pause, without a limit) running.
 */
export const keepRunning = (
  first: PidFile,
  start: Effect.Effect<PidFile, PluginError>,
  log: Log,
): Effect.Effect<{ readonly port: () => number }, never, Scope.Scope> =>
  Effect.gen(function* () {
    let server = first
    const restart = start.pipe(
      Effect.tapError((error) =>
        Effect.sync(() =>
          log.error("database.restart_failed", "PostgreSQL can't be started again", {
            reason: error.message,
          }),
        ),
      ),
      Effect.retry(backoff),
      Effect.orDie,
    )
    const watch = Effect.gen(function* () {
      for (;;) {
        yield* untilDead(server.pid)
        log.error("database.died", "PostgreSQL died; starting it again", { pid: server.pid })
        server = yield* restart
        log.info("database.restarted", "PostgreSQL runs again", {
          pid: server.pid,
          port: server.port,
        })
      }
    })
    const logged = watch.pipe(
      Effect.tapCause((cause) =>
        Effect.sync(() =>
          log.debug("database.watch_ended", "PostgreSQL is no longer watched", {
            cause: String(cause),
          }),
        ),
      ),
    )
    yield* Effect.forkScoped(logged, { startImmediately: true })
    return { port: () => server.port }
  })
