import { Effect } from "effect"
import type { Log } from "../../../core/services/log.ts"
import type { Cluster } from "./cluster.ts"
import { readPidFile } from "./pid-file.ts"
import { isAlive, isSurelyNotServerOf, signal } from "./process-list.ts"

const gone = (pid: number) =>
  Effect.gen(function* () {
    while (isAlive(pid)) yield* Effect.sleep("20 millis")
  })

/**
 * Requests a fast shutdown: open transactions are rolled back, everything is flushed. Returns the
 * pid of the server; undefined when none runs.
 */
export const askToStop = (cluster: Cluster): number | undefined => {
  const pid = readPidFile(cluster.home)?.pid
  if (pid === undefined || !isAlive(pid) || isSurelyNotServerOf(cluster.home, pid)) return undefined
  signal(pid, "SIGINT")
  return pid
}

/**
 * Requests a fast shutdown and waits; after 15 s an immediate one, which is a crash without loss.
 */
export const stopServer = (cluster: Cluster, log: Log): Effect.Effect<void> =>
  Effect.gen(function* () {
    const pid = askToStop(cluster)
    if (pid === undefined) return
    const ended = yield* gone(pid).pipe(
      Effect.as(true),
      Effect.timeoutOrElse({ duration: "15 seconds", orElse: () => Effect.succeed(false) }),
    )
    if (ended) return
    log.warn("database.stop_slow", "PostgreSQL does not stop in time; stopping it at once", { pid })
    signal(pid, "SIGQUIT")
    yield* gone(pid).pipe(
      Effect.timeoutOrElse({
        duration: "5 seconds",
        orElse: () =>
          Effect.sync(() => log.error("database.stop_failed", "PostgreSQL does not stop", { pid })),
      }),
    )
  })
