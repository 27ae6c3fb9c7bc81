import { Effect, Redacted, type Scope } from "effect"
import type pg from "pg"
import type { PluginError } from "../../core/errors.ts"
import type { Database } from "../../core/ports/database.ts"
import type { HealthCheck } from "../../core/ports/health.ts"
import type { Deployment } from "../../core/services/deployment.ts"
import type { Log } from "../../core/services/log.ts"
import type { Metrics } from "../../core/services/metrics.ts"
import { makeDatabase } from "./database.ts"
import { clusterIn, noRoomIn } from "./embedded/cluster.ts"
import { openEmbedded } from "./embedded/embedded.ts"
import { makeCheck, makeFailures } from "./health.ts"
import { makePool, type PoolOptions } from "./pool.ts"
import { checkServer } from "./ready.ts"
import type { Settings } from "./settings.ts"
import { makeWatch } from "./watch.ts"

export interface PostgresDeps {
  readonly deployment: Deployment
  readonly log: Log
  readonly metrics?: Metrics
}

const longestClose = "5 seconds"

const poolOptions = (
  settings: Settings,
  deps: PostgresDeps,
  address: () => pg.ClientConfig,
): PoolOptions => ({
  ...settings,
  address,
  applicationName:
    `rakit ${deps.deployment.mode === "server" ? "serve" : "command"} ${deps.deployment.name}`.slice(
      0,
      63,
    ),
  onLost: (error) =>
    deps.log.warn("database.connection_lost", "a database connection was lost", {
      reason: error.message,
    }),
})

const watchOf = ({ address, connectTimeoutMs }: PoolOptions, log: Log) =>
  makeWatch({
    address,
    connectTimeoutMs,
    onDown: (reason) =>
      log.error(
        "database.unreachable",
        "the database is away: calls are refused until it is back",
        {
          reason,
        },
      ),
    onUp: (downMs) =>
      log.info("database.back", "the database is back", { down_ms: Math.round(downMs) }),
  })

/** Migrations have no time limits. */
const migrationOptions = (options: PoolOptions): PoolOptions => ({
  ...options,
  maxConnections: 1,
  statementTimeoutMs: 0,
  idleInTransactionTimeoutMs: 0,
})

interface Server {
  readonly address: () => pg.ClientConfig
  /** Says that the disk is full, where the server is our own. */
  readonly noRoom: () => string | undefined
}

const findServer = (settings: Settings, { deployment, log }: PostgresDeps) => {
  const url = Redacted.value(settings.url)
  if (url !== "")
    return Effect.succeed<Server>({
      address: () => ({ connectionString: url }),
      noRoom: () => undefined,
    })
  const cluster = clusterIn(deployment.dataDir, { maxConnections: settings.maxConnections })
  return Effect.map(
    openEmbedded(cluster, deployment.mode, log),
    (address): Server => ({ address, noRoom: () => noRoomIn(cluster) }),
  )
}

/**
 * Connects to the server of the settings, or starts the embedded one, for as long as the Scope is
 * open.
 */
export const openPostgres = (
  settings: Settings,
  deps: PostgresDeps,
): Effect.Effect<
  { readonly database: Database; readonly ping: HealthCheck },
  PluginError,
  Scope.Scope
> =>
  Effect.gen(function* () {
    const { address, noRoom } = yield* findServer(settings, deps)
    const version = yield* checkServer(address(), settings.connectTimeoutMs)
    const options = poolOptions(settings, deps, address)
    const failures = makeFailures(noRoom)
    const watch = watchOf(options, deps.log)
    const open = Effect.sync(() =>
      makeDatabase(
        makePool({ ...options, ...(deps.metrics && { metrics: deps.metrics }) }, watch),
        () => makePool(migrationOptions(options)),
        failures,
      ),
    )
    const { database } = yield* Effect.acquireRelease(open, ({ close }) =>
      Effect.promise(close).pipe(Effect.timeoutOption(longestClose)),
    )
    deps.log.debug("database.ready", "the database is ready", { version })
    return { database, ping: makeCheck(database, failures, noRoom, watch) }
  })
