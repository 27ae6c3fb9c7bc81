import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect } from "effect"
import { clusterIn, startUnowned, stopServer } from "../../plugins/database-postgres/plugin.ts"
import { consoleLog } from "../measure/console-log.ts"

/**
 * An embedded PostgreSQL server for openTestDatabase, unless RAKIT_TEST_DATABASE_URL names one.
 * Returns how to stop it.
 */
export const startEmbedded = async (
  options: Parameters<typeof clusterIn>[1],
): Promise<() => Promise<void>> => {
  if (process.env.RAKIT_TEST_DATABASE_URL) return async () => {}
  const folder = await mkdtemp(join(tmpdir(), "rakit-bench-"))
  const cluster = clusterIn(folder, options)
  const { user, password, host, port, database } = (
    await Effect.runPromise(startUnowned(cluster, consoleLog))
  )()
  process.env.RAKIT_TEST_DATABASE_URL = `postgres://${user}:${password}@${host}:${port}/${database}`
  return async () => {
    await Effect.runPromise(stopServer(cluster, consoleLog))
    await rm(folder, { recursive: true, force: true })
  }
}
