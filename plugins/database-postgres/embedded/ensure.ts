import { existsSync, renameSync } from "node:fs"
import { Effect } from "effect"
import type { PluginError } from "../../../core/errors.ts"
import type { Log } from "../../../core/services/log.ts"
import { asPluginError, cannotStart } from "../failure.ts"
import { whyNotAnswering } from "./probe.ts"
import type { Binaries } from "./binaries.ts"
import type { Cluster } from "./cluster.ts"
import { type Launch, launch } from "./launch.ts"
import { makeCluster } from "./make-cluster.ts"
import { type PidFile, pidFilePath, readPidFile } from "./pid-file.ts"
import { isAlive, isSurelyNotServerOf, signal } from "./process-list.ts"

/** Crash recovery reads the log back to the last checkpoint, at most 512 MB of it. */
const readyLimit = "5 minutes"
const pause = "100 millis"
/** With the pause and the time of a start these are 10 s or more. */
const launchLimit = 60

/** These pass: another process starts it too, or the last one's memory and port are not yet given back. */
const passing =
  /lock file .* (already exists|is empty)|shared memory block|could not (bind|create any TCP)|Address already in use/

interface Attempts {
  launches: number
  current: { readonly server: Launch; readonly log: () => Promise<string> } | undefined
  reason: string
}

const runningIn = (cluster: Cluster, log: Log): PidFile | undefined => {
  const file = readPidFile(cluster.home)
  if (file === undefined || !isAlive(file.pid)) return undefined
  if (!isSurelyNotServerOf(cluster.home, file.pid)) return file
  // PostgreSQL would refuse to start as long as that process lives. Its own shared memory still guards against a second server
  log.warn(
    "database.stale_pid_file",
    "postmaster.pid names a process that is not the server of this folder; it was put aside",
    { pid: file.pid },
  )
  renameSync(pidFilePath(cluster.home), `${pidFilePath(cluster.home)}.stale`)
  return undefined
}

const launchAgain = async (
  cluster: Cluster,
  binaries: Binaries,
  attempts: Attempts,
): Promise<void> => {
  const last = attempts.current
  const ended = last?.server.lastWords()
  if (last !== undefined && ended === undefined) return
  if (last !== undefined) attempts.reason = `${ended}\n${await last.log()}`.trim()
  if (last !== undefined && (!passing.test(attempts.reason) || attempts.launches >= launchLimit))
    throw cannotStart(
      `the embedded PostgreSQL in ${cluster.home} does not start: ${attempts.reason}`,
    )
  attempts.launches += 1
  attempts.current = await launch(cluster, binaries)
}

/** One look: answers the server when it is ready, else starts one if there is none. */
const attempt = async (
  cluster: Cluster,
  binaries: Binaries,
  log: Log,
  attempts: Attempts,
): Promise<PidFile | undefined> => {
  const running = runningIn(cluster, log)
  if (running === undefined) {
    await launchAgain(cluster, binaries, attempts)
    return undefined
  }
  const reason = await whyNotAnswering(cluster, running.port)
  if (reason === undefined) return running
  attempts.reason = reason
  return undefined
}

/**
 * The server of this cluster: one that runs already is adopted, else one is started. Several processes may do this at once; all get the same server.
 * States: absent -> made (initdb) -> launched -> ready; launched -> gone (another was faster, or it can't) -> launched.
 */
export const ensureRunning = (
  cluster: Cluster,
  binaries: Binaries,
  log: Log,
): Effect.Effect<PidFile, PluginError> =>
  Effect.gen(function* () {
    // whoever stops us now waits for initdb, which would go on without us and leave its folder
    yield* Effect.uninterruptible(
      Effect.tryPromise({ try: () => makeCluster(cluster, binaries), catch: asPluginError }),
    )
    if (!existsSync(cluster.passwordFile))
      return yield* cannotStart(
        `${cluster.passwordFile} is missing. Put it back, or move ${cluster.home} away to begin anew`,
      )
    const attempts: Attempts = { launches: 0, current: undefined, reason: "" }
    const look = Effect.tryPromise({
      try: () => attempt(cluster, binaries, log, attempts),
      catch: asPluginError,
    })
    const loop = Effect.gen(function* () {
      for (;;) {
        const running = yield* look
        if (running !== undefined) return running
        yield* Effect.sleep(pause)
      }
    })
    return yield* loop.pipe(
      Effect.timeoutOrElse({
        duration: readyLimit,
        orElse: () =>
          Effect.fail(
            cannotStart(
              `the embedded PostgreSQL in ${cluster.home} does not answer: ${attempts.reason}`,
            ),
          ),
      }),
      Effect.onInterrupt(() =>
        Effect.sync(
          () =>
            attempts.current?.server.pid !== undefined &&
            signal(attempts.current.server.pid, "SIGINT"),
        ),
      ),
    )
  })
