import { readFileSync, realpathSync } from "node:fs"
import pg from "pg"
import { reasonOf } from "../failure.ts"
import { type Cluster, databaseName, superuser } from "./cluster.ts"

export const addressOf = (cluster: Cluster, port: number): pg.ClientConfig => ({
  host: "127.0.0.1",
  port,
  user: superuser,
  password: readFileSync(cluster.passwordFile, "utf8").trim(),
  database: databaseName,
  ssl: false,
})

const withClient = async <A>(
  cluster: Cluster,
  port: number,
  use: (client: pg.Client) => Promise<A>,
): Promise<A> => {
  const client = new pg.Client({
    ...addressOf(cluster, port),
    connectionTimeoutMillis: 2_000,
    query_timeout: 2_000,
    application_name: "rakit supervisor",
  })
  client.on("error", () => {})
  try {
    await client.connect()
    return await use(client)
  } finally {
    await client.end().catch(() => {})
  }
}

/**
 * Returns undefined when the server of this cluster answers, otherwise the reason why it does not.
 */
export const whyNotAnswering = async (
  cluster: Cluster,
  port: number,
): Promise<string | undefined> => {
  try {
    const home = await withClient(
      cluster,
      port,
      async (client) =>
        (await client.query<{ data_directory: string }>("show data_directory")).rows[0]
          ?.data_directory,
    )
    return home !== undefined && realpathSync(home) === realpathSync(cluster.home)
      ? undefined
      : `the server on port ${port} is that of ${home}`
  } catch (error) {
    return reasonOf(error)
  }
}

/** Returns the number of client connections other than this one. */
export const countOthers = (cluster: Cluster, port: number): Promise<number> =>
  withClient(cluster, port, async (client) => {
    const result = await client.query<{ n: number }>(
      "select count(*)::int as n from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid()",
    )
    return result.rows[0]?.n ?? 0
  })
