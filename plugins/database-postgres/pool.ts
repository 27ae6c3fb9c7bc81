import type { PostgresPool, PostgresPoolClient } from "kysely"
import pg from "pg"
import { PortError } from "../../core/errors.ts"
import { valueParsers } from "./values.ts"

export interface PoolOptions {
  /** Asked for every new connection: the embedded server may come back on another port. */
  readonly address: () => pg.ClientConfig
  readonly applicationName: string
  readonly maxConnections: number
  readonly maxWaiting: number
  readonly connectTimeoutMs: number
  /** 0: no limit. */
  readonly statementTimeoutMs: number
  readonly idleInTransactionTimeoutMs: number
  /** A connection that nobody used broke. The pool has forgotten it already. */
  readonly onLost: (error: Error) => void
}

const readTimeout = "Query read timeout"

const prepared = "/* prepared */"
const maxPrepared = 100

/** Names for statements that ask to be prepared; the server keeps them for each connection, so there must be few. */
const makeNames = () => {
  const names = new Map<string, string>()
  return (text: string): { readonly name?: string } => {
    if (!text.startsWith(prepared)) return {}
    const known = names.get(text)
    if (known !== undefined) return { name: known }
    if (names.size === maxPrepared) return {}
    const name = `rakit_${names.size}`
    names.set(text, name)
    return { name }
  }
}

const guard = (client: pg.PoolClient, nameOf: ReturnType<typeof makeNames>): PostgresPoolClient => {
  let broken = false
  const query = async (sql: string, parameters: readonly unknown[]) => {
    try {
      const result = await client.query({ text: sql, values: [...parameters], ...nameOf(sql) })
      // PostgreSQL answers `commit` after a failed statement by rolling back, without an error
      if (sql === "commit" && result.command === "ROLLBACK")
        throw new Error("the transaction was rolled back: a statement in it had failed")
      return result
    } catch (error) {
      // the answer may still come: the next user of the connection would read it
      broken ||= error instanceof Error && error.message === readTimeout
      throw error
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

const sessionSettings = (options: PoolOptions): string =>
  [
    "set time zone 'UTC'",
    `set statement_timeout = ${options.statementTimeoutMs}`,
    `set idle_in_transaction_session_timeout = ${options.idleInTransactionTimeoutMs}`,
  ].join("; ")

/** A pool of `pg` that survives lost connections and refuses callers when too many wait. */
export const makePool = (options: PoolOptions): PostgresPool => {
  const nameOf = makeNames()
  const pool = new pg.Pool({
    Client: clientFor(options.address),
    types: valueParsers,
    application_name: options.applicationName,
    max: options.maxConnections,
    connectionTimeoutMillis: options.connectTimeoutMs,
    // the server's own limit comes first; this one is for a server that no longer answers at all
    ...(options.statementTimeoutMs > 0 && { query_timeout: options.statementTimeoutMs + 5_000 }),
    keepAlive: true,
    keepAliveInitialDelayMillis: 30_000,
    onConnect: async (client) => {
      await client.query(sessionSettings(options))
    },
  })
  pool.on("error", options.onLost)
  // while a connection is in use nobody else listens: without this its loss ends the process
  pool.on("connect", (client) => client.on("error", () => {}))
  return {
    connect: async () => {
      if (pool.waitingCount >= options.maxWaiting)
        throw new PortError({
          port: "database",
          message: `too busy: ${options.maxWaiting} callers already wait for a connection`,
          busy: true,
        })
      return guard(await pool.connect(), nameOf)
    },
    end: () => pool.end(),
  }
}
