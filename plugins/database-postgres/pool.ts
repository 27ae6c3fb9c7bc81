import type { PostgresPool, PostgresPoolClient } from "kysely"
import pg from "pg"
import { PortError } from "../../core/errors.ts"
import type { Metrics } from "../../core/services/metrics.ts"
import { whyOf } from "./failure.ts"
import { streamOf, type Watch } from "./watch.ts"

export interface PoolOptions {
  /**
   * Called for every new connection: after a restart the embedded server may listen on another
   * port.
   */
  readonly address: () => pg.ClientConfig
  /** Behind a pooler in transaction mode: statements of a session may run on several connections. */
  readonly isPooled: boolean
  readonly applicationName: string
  readonly maxConnections: number
  readonly maxWaiting: number
  readonly connectTimeoutMs: number
  /** 0: no limit. */
  readonly statementTimeoutMs: number
  readonly idleInTransactionTimeoutMs: number
  /** Called when an idle connection was lost; the pool has already removed it. */
  readonly onLost: (error: Error) => void
  readonly metrics?: Metrics
}

/** Named as in OpenTelemetry's conventions for database clients. */
const measure = (metrics: Metrics, pool: pg.Pool, most: number): void => {
  const connections = metrics.gauge(
    "rakit_db_client_connection_count",
    "Connections to the database by state: used or idle.",
    ["state"],
  )
  const pending = metrics.gauge(
    "rakit_db_client_connection_pending_requests",
    "Callers that wait for a connection to the database.",
  )
  const max = metrics.gauge(
    "rakit_db_client_connection_max",
    "Most connections of this process to the database.",
  )
  metrics.onRead(() => {
    connections.set(pool.idleCount, { state: "idle" })
    connections.set(pool.totalCount - pool.idleCount, { state: "used" })
    pending.set(pool.waitingCount)
    max.set(most)
  })
}

const oid = { int8: 20, int8Array: 1016, date: 1082, dateArray: 1182, textArray: 1009 }

const parseInt8Array = (text: string): unknown => {
  const items: readonly (string | null)[] = pg.types.getTypeParser(oid.textArray)(text)
  return items.map((item) => (item === null ? null : BigInt(item)))
}

const parsers = new Map<number, (text: string) => unknown>([
  [oid.int8, BigInt],
  [oid.int8Array, parseInt8Array],
  // pg would return local midnight, which is another day in other time zones
  [oid.date, String],
  [oid.dateArray, pg.types.getTypeParser(oid.textArray)],
])

/**
 * Types of results: `bigint` and `count(*)` as bigint, `numeric` and `date` as text, `timestamptz`
 * as Date, JSON parsed. Set for this pool only, as the global parsers of `pg` belong to the whole
 * process.
 */
const valueParsers = {
  getTypeParser: ((id: number, format?: "text" | "binary") =>
    (format !== "binary" && parsers.get(id)) ||
    pg.types.getTypeParser(id, format as "text")) as typeof pg.types.getTypeParser,
}

const prepared = "/* prepared */"
const maxPrepared = 100

/**
 * Names the statements to prepare. The server keeps them for each connection, so there may be few;
 * behind a pooler there are none, as the next connection would not know them.
 */
const makeNames = (isPooled: boolean) => {
  const names = new Map<string, string>()
  return (text: string): { readonly name?: string } => {
    if (isPooled || !text.startsWith(prepared)) return {}
    const known = names.get(text)
    if (known !== undefined) return { name: known }
    if (names.size === maxPrepared) return {}
    const name = `rakit_${names.size}`
    names.set(text, name)
    return { name }
  }
}

/** Ends the connection, and with an error the statement that it is at. */
const abandon = (client: pg.ClientBase): void =>
  void streamOf(client).destroy(
    Object.assign(new Error("the server does not answer"), { code: "ETIMEDOUT" }),
  )

/**
 * `client.query` as a promise, with its `query_timeout`. Those of `pg` assign a closure to a
 * property, which V8 allocates in its old heap: values and result would stay in memory until the
 * next full collection.
 */
const answerTo = (
  client: pg.ClientBase,
  query: pg.QueryConfig,
  timeoutMs: number,
): Promise<pg.QueryResult> =>
  new Promise((resolve, reject) => {
    const timer = timeoutMs > 0 ? setTimeout(() => abandon(client), timeoutMs) : undefined
    client.query(query, (error, result) => {
      clearTimeout(timer)
      if (error) reject(error)
      else resolve(result)
    })
  })

const guard = (
  client: pg.PoolClient,
  nameOf: ReturnType<typeof makeNames>,
  watch: Watch | undefined,
  { begin, timeoutMs }: { readonly begin: string; readonly timeoutMs: number },
): PostgresPoolClient => {
  let broken = false
  const query = async (sql: string, parameters: readonly unknown[]) => {
    const ended = watch?.sent(() => abandon(client))
    try {
      if (sql === "begin") return await answerTo(client, { text: begin }, timeoutMs)
      const asked = { text: sql, values: [...parameters], ...nameOf(sql) }
      const result = await answerTo(client, asked, timeoutMs)
      // PostgreSQL rolls back at `commit` after a failed statement, without an error
      if (sql === "commit" && result.command === "ROLLBACK")
        throw new Error("the transaction was rolled back: a statement in it had failed")
      return result
    } catch (error) {
      // the server is about to close it, or has become a standby; and after a read timeout the
      // result may still arrive, and the next user of the connection would read it
      broken ||= whyOf(error) === "unavailable"
      if (broken) watch?.suspect()
      throw error
    } finally {
      ended?.()
    }
  }
  return {
    query: query as unknown as PostgresPoolClient["query"],
    release: () => client.release(broken),
  }
}

const clientFor = (address: () => pg.ClientConfig) =>
  class extends pg.Client {
    constructor(config?: pg.ClientConfig) {
      super({ ...config, ...address() })
    }
  }

const timeLimits = (options: PoolOptions, scope: "" | "local "): string =>
  [
    `set ${scope}statement_timeout = ${options.statementTimeoutMs}`,
    `set ${scope}idle_in_transaction_session_timeout = ${options.idleInTransactionTimeoutMs}`,
  ].join("; ")

/**
 * Sent on a new connection. A pooler keeps the time zone for each of its clients, but would leave
 * time limits on whichever connection it had at hand.
 */
const sessionSettings = (options: PoolOptions): string =>
  `set time zone 'UTC'${options.isPooled ? "" : `; ${timeLimits(options, "")}`}`

const beginOf = (options: PoolOptions): string =>
  options.isPooled ? `begin; ${timeLimits(options, "local ")}` : "begin"

/** Gives up when the server goes down meanwhile: the pool would wait until its time limit. */
const connectWhileUp = (pool: pg.Pool, watch: Watch): Promise<pg.PoolClient> => {
  const down = watch.down()
  // connections that are open may be alive
  if (down && pool.idleCount === 0) return Promise.reject(down)
  return new Promise((resolve, reject) => {
    let gaveUp = false
    const connected = watch.onDown((error) => {
      gaveUp = true
      reject(error)
    })
    pool.connect().then(
      (client) => {
        connected()
        if (gaveUp) client.release()
        else resolve(client)
      },
      (error) => {
        connected()
        if (whyOf(error) === "unavailable") watch.suspect()
        reject(error)
      },
    )
  })
}

/**
 * A pool of `pg` that survives lost connections and refuses callers when too many wait. With a
 * `watch`, also when the server is down.
 */
export const makePool = (options: PoolOptions, watch?: Watch): PostgresPool => {
  const nameOf = makeNames(options.isPooled)
  // the limit of the server ends statements first; this one is for a server that no longer answers
  const timeoutMs = options.statementTimeoutMs > 0 ? options.statementTimeoutMs + 5_000 : 0
  const limits = { begin: beginOf(options), timeoutMs }
  const pool = new pg.Pool({
    Client: clientFor(options.address),
    types: valueParsers,
    application_name: options.applicationName,
    max: options.maxConnections,
    connectionTimeoutMillis: options.connectTimeoutMs,
    keepAlive: true,
    keepAliveInitialDelayMillis: 30_000,
    onConnect: async (client) => {
      await answerTo(client, { text: sessionSettings(options) }, timeoutMs)
    },
  })
  if (options.metrics) measure(options.metrics, pool, options.maxConnections)
  pool.on("error", options.onLost)
  // the pool does not listen while a connection is in use: without this its loss would end the
  // process
  pool.on("connect", (client) => client.on("error", () => {}))
  return {
    connect: async () => {
      if (pool.waitingCount >= options.maxWaiting)
        throw new PortError({
          port: "database",
          message: `too busy: ${options.maxWaiting} callers already wait for a connection`,
          why: "busy",
        })
      const client = await (watch ? connectWhileUp(pool, watch) : pool.connect())
      return guard(client, nameOf, watch, limits)
    },
    end: () => {
      watch?.close()
      return pool.end()
    },
  }
}
