import { existsSync } from "node:fs"
import { writeFile } from "node:fs/promises"
import { join } from "node:path"
import { setTimeout } from "node:timers/promises"
import { Effect } from "effect"
import type pg from "pg"
import type { Log } from "../core/services/log.ts"
import { clusterIn, startUnowned, stopServer } from "../plugins/database-postgres/plugin.ts"

export const serverVariable = "RAKIT_TEST_DATABASE_URL"
export const folderVariable = "RAKIT_TEST_DATABASE_DIR"

const quiet: Log = {
  debug: () => {},
  info: () => {},
  warn: () => {},
  error: () => {},
  with: () => quiet,
}

type Cluster = ReturnType<typeof clusterIn>

const clusterOf = (folder: string) => clusterIn(folder, { maxConnections: 300, durable: false })

const urlOf = ({ user, password, host, port, database }: pg.ClientConfig): string =>
  `postgres://${user}:${password}@${host}:${port}/${database}`

const madeMs = 20_000
const lookMs = 50

/**
 * The first process of a test run creates the cluster while the others wait: each would create one
 * at the same time and discard it.
 */
const firstMakes = async ({ dataDir, home }: Cluster): Promise<void> => {
  const isFirst = await writeFile(join(dataDir, "being-made"), "", { flag: "wx" }).then(
    () => true,
    () => false,
  )
  if (!isFirst)
    for (let waitedMs = 0; !existsSync(home) && waitedMs < madeMs; waitedMs += lookMs)
      await setTimeout(lookMs)
}

/**
 * Returns the URL of the test server: `RAKIT_TEST_DATABASE_URL`, or one embedded server for all
 * test files, which the first caller starts.
 */
export const testServerUrl = async (): Promise<string> => {
  const url = process.env[serverVariable]
  if (url) return url
  const folder = process.env[folderVariable]
  if (!folder)
    throw new Error(
      `set ${serverVariable}, or list testing/global-setup.ts in vitest's globalSetup`,
    )
  const cluster = clusterOf(folder)
  await firstMakes(cluster)
  const address = await Effect.runPromise(startUnowned(cluster, quiet))
  return urlOf(address())
}

/** Does nothing when no test started the server. */
export const stopTestServer = (folder: string): Promise<void> =>
  Effect.runPromise(stopServer(clusterOf(folder), quiet))
