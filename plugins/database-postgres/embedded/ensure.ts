import { existsSync, renameSync } from "node:fs"
import { Effect } from "effect"
import type { PluginError } from "../../../core/errors.ts"
import type { Log } from "../../../core/services/log.ts"
import { asPluginError, cannotStart } from "../failure.ts"
import type { Binaries } from "./binaries.ts"
import type { Cluster } from "./cluster.ts"
import { type Launch, launch } from "./launch.ts"
import { makeCluster } from "./make-cluster.ts"
import { type PidFile, pidFilePath, readPidFile } from "./pid-file.ts"
import { whyNotAnswering } from "./probe.ts"
import { isAlive, isSurelyNotServerOf, isZombie, signal } from "./process-list.ts"

/** Crash recovery replays the write-ahead log from the last checkpoint, at most 512 MB. */
const readyLimit = "5 minutes"
const pause = "100 millis"
/** With the pauses and the time of each start, 10 s or more. */
const launchLimit = 60

/**
 * Transient errors: another process starts the server too, or the previous one has not released its
 * memory and port yet.
 */
const passing =
  /lock file .* (already exists|is empty)|shared memory block|could not (bind|create any TCP)|Address already in use/

interface Attempts {
  launches: number
  current: { readonly server: Launch; readonly log: () => Promise<string> } | undefined
  reason: string
}

const runningIn = (cluster: Cluster, log: Log): PidFile | undefined => {
  const file = readPidFile(cluster.home)
  if (file === undefined || !(isAlive(file.pid) || isZombie(file.pid))) return undefined
  if (!isZombie(file.pid) && !isSurelyNotServerOf(cluster.home, file.pid)) return file
  // PostgreSQL refuses to start as long as that process lives. Its shared memory block still guards
  // against a second server
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

/** Returns the server when it is ready; otherwise starts one if none runs. */
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
 * Returns the server of this cluster: adopts one that runs, otherwise starts one. Several processes
 * may do this at once; all get the same server.
 * States: absent -> made (initdb) -> launched -> ready; launched -> gone (another was faster, or it
 * can't) -> launched.
 */
export const ensureRunning = (
  cluster: Cluster,
  binaries: Binaries,
  log: Log,
): Effect.Effect<PidFile, PluginError> =>
  Effect.gen(function* () {
    // uninterruptible: initdb would outlive an interruption and leave its folder behind
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
