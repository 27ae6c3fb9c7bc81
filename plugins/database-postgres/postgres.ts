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
import { cannotStart } from "./failure.ts"
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

interface Server {
  readonly address: () => pg.ClientConfig
  /** The server behind a pooler; absent: there is none. */
  readonly direct?: () => pg.ClientConfig
  /** Embedded: in our data folder, for one server at a time. */
  readonly isEmbedded: boolean
  /** Says that the disk is full, where the server is our own. */
  readonly noRoom: () => string | undefined
}

const poolOptions = (
  settings: Settings,
  deps: PostgresDeps,
  { address, direct }: Server,
): PoolOptions => ({
  ...settings,
  address,
  isPooled: direct !== undefined,
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

/** Migrations and sessions have no time limits. */
const sessionOptions = (options: PoolOptions, direct: Server["address"]): PoolOptions => ({
  ...options,
  address: direct,
  isPooled: false,
  maxConnections: 1,
  statementTimeoutMs: 0,
  idleInTransactionTimeoutMs: 0,
})

const findServer = (settings: Settings, { deployment, log }: PostgresDeps) => {
  const url = Redacted.value(settings.url)
  const directUrl = Redacted.value(settings.directUrl)
  if (url === "" && directUrl !== "")
    return cannotStart("directUrl is the server behind the pooler that url names: set url, too")
  if (url !== "")
    return Effect.succeed<Server>({
      address: () => ({ connectionString: url }),
      ...(directUrl !== "" && { direct: () => ({ connectionString: directUrl }) }),
      isEmbedded: false,
      noRoom: () => undefined,
    })
  const cluster = clusterIn(deployment.dataDir, { maxConnections: settings.maxConnections })
  return Effect.map(
    openEmbedded(cluster, deployment.mode, log),
    (address): Server => ({ address, isEmbedded: true, noRoom: () => noRoomIn(cluster) }),
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
    const server = yield* findServer(settings, deps)
    const { address, direct = address, noRoom } = server
    const version = yield* checkServer(address(), settings.connectTimeoutMs, server.direct?.())
    const options = poolOptions(settings, deps, server)
    const failures = makeFailures(noRoom)
    const watch = watchOf(options, deps.log)
    const open = Effect.sync(() =>
      makeDatabase(
        makePool({ ...options, ...(deps.metrics && { metrics: deps.metrics }) }, watch),
        () => makePool(sessionOptions(options, direct)),
        failures,
        server.isEmbedded,
      ),
    )
    const { database } = yield* Effect.acquireRelease(open, ({ close }) =>
      Effect.promise(close).pipe(Effect.timeoutOption(longestClose)),
    )
    deps.log.debug("database.ready", "the database is ready", { version })
    return { database, ping: makeCheck(database, failures, noRoom, watch) }
  })
