import { Effect, type Scope } from "effect"
import type { ClientConfig } from "pg"
import type { PluginError } from "../../../core/errors.ts"
import type { Deployment } from "../../../core/services/deployment.ts"
import type { Log } from "../../../core/services/log.ts"
import { asPluginError } from "../failure.ts"
import { type Binaries, findBinaries } from "./binaries.ts"
import type { Cluster } from "./cluster.ts"
import { ensureRunning } from "./ensure.ts"
import { removeLeftovers } from "./make-cluster.ts"
import { readPidFile } from "./pid-file.ts"
import { addressOf, countOthers } from "./probe.ts"
import { lockOwner, takeLock, untilFree } from "./server-lock.ts"
import { askToStop, stopServer } from "./stop.ts"
import { keepRunning } from "./supervise.ts"

/** Returns the current address; after a restart the server may listen on another port. */
export type Address = () => ClientConfig

const findAll = Effect.try({ try: findBinaries, catch: asPluginError })

/**
 * A second signal, or a crash, ends this process without closing the Scope; the server must not be
 * left running.
 */
const stopOnExit = (cluster: Cluster) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const ask = () => void askToStop(cluster)
      process.on("exit", ask)
      return ask
    }),
    (ask) => Effect.sync(() => process.off("exit", ask)),
  )

/**
 * Owns the server, started or adopted: restarts it when it dies, and stops it when the Scope
 * closes.
 */
const own = (cluster: Cluster, binaries: Binaries, log: Log) =>
  Effect.gen(function* () {
    yield* untilFree(cluster.lockFile, log)
    yield* Effect.acquireRelease(
      Effect.try({ try: () => takeLock(cluster.lockFile), catch: asPluginError }),
      (release) => Effect.sync(release),
    )
    yield* stopOnExit(cluster)
    yield* Effect.addFinalizer(() => stopServer(cluster, log))
    const first = yield* ensureRunning(cluster, binaries, log)
    yield* Effect.promise(() => removeLeftovers(cluster))
    return yield* keepRunning(first, ensureRunning(cluster, binaries, log), log)
  })

const polls = { atMost: 10, everyMs: 50 }

/** Closed connections of this process may still be counted for a moment. */
const isUnused = (cluster: Cluster, port: number): Effect.Effect<boolean> =>
  Effect.gen(function* () {
    for (let poll = 1; ; poll++) {
      const others = yield* Effect.promise(() => countOthers(cluster, port).catch(() => undefined))
      if (others === 0 || poll === polls.atMost) return others === 0
      yield* Effect.sleep(polls.everyMs)
    }
  })

/** Stops the server unless a `serve` process owns it or another command still uses it. */
const stopIfLast = (cluster: Cluster, log: Log) =>
  Effect.gen(function* () {
    const port = readPidFile(cluster.home)?.port
    if (port === undefined || lockOwner(cluster.lockFile) !== undefined) return
    const isLast = yield* isUnused(cluster, port)
    // checked again: a `serve` process may have started meanwhile
    if (isLast && lockOwner(cluster.lockFile) === undefined) yield* stopServer(cluster, log)
  })

const borrow = (cluster: Cluster, binaries: Binaries, log: Log) =>
  Effect.gen(function* () {
    yield* Effect.addFinalizer(() => stopIfLast(cluster, log))
    return yield* ensureRunning(cluster, binaries, log)
  })

export const openEmbedded = (
  cluster: Cluster,
  mode: Deployment["mode"],
  log: Log,
): Effect.Effect<Address, PluginError, Scope.Scope> =>
  Effect.gen(function* () {
    const binaries = yield* findAll
    if (mode === "server") {
      const server = yield* own(cluster, binaries, log)
      return () => addressOf(cluster, server.port())
    }
    const { port } = yield* borrow(cluster, binaries, log)
    return () => addressOf(cluster, port)
  })

/** Starts a server without an owner, which runs until `stopServer`. For tests. */
export const startUnowned = (cluster: Cluster, log: Log): Effect.Effect<Address, PluginError> =>
  Effect.gen(function* () {
    const { port } = yield* ensureRunning(cluster, yield* findAll, log)
    return () => addressOf(cluster, port)
  })
