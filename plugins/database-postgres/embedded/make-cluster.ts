import { randomBytes } from "node:crypto"
import { existsSync } from "node:fs"
import {
  chmod,
  chown,
  link,
  mkdir,
  mkdtemp,
  open,
  readdir,
  readFile,
  rename,
  rm,
  writeFile,
} from "node:fs/promises"
import { join } from "node:path"
import { cannotStart, reasonOf } from "../failure.ts"
import type { Binaries } from "./binaries.ts"
import { type Cluster, superuser } from "./cluster.ts"
import { candidates, type RunAs, runToEnd } from "./run-as.ts"

const initdbLimitMs = 120_000
const workPrefix = "postgres.making-"

/**
 * Returns the password; the first process to write the file wins, and all use its password. A hard
 * link creates the file atomically.
 */
const ensurePassword = async (cluster: Cluster, work: string): Promise<string> => {
  const draft = join(work, "draft")
  await writeFile(draft, randomBytes(24).toString("base64url"), { mode: 0o600, flush: true })
  await link(draft, cluster.passwordFile).catch((error) => {
    if (!existsSync(cluster.passwordFile)) throw error
  })
  return await readFile(cluster.passwordFile, "utf8")
}

const giveTo = async (runAs: RunAs, ...paths: readonly string[]): Promise<void> => {
  if (process.getuid?.() !== 0 || runAs.uid === undefined || runAs.gid === undefined) return
  for (const path of paths) await chown(path, runAs.uid, runAs.gid)
}

const flush = async (folder: string): Promise<void> => {
  // Windows can't open folders
  if (process.platform === "win32") return
  const handle = await open(folder)
  await handle.sync().finally(() => handle.close())
}

const initdbArgs = (cluster: Cluster, work: string): readonly string[] => [
  `--pgdata=${join(work, "home")}`,
  `--username=${superuser}`,
  `--pwfile=${join(work, "password")}`,
  "--auth=scram-sha-256",
  "--encoding=UTF8",
  // the same sort order and upper case on every machine, and after every upgrade of the system
  "--locale=C",
  "--locale-provider=builtin",
  "--builtin-locale=C.UTF-8",
  "--no-instructions",
  ...(cluster.durable ? [] : ["--no-sync"]),
]

/** Returns undefined when it worked, otherwise the reason why it did not. */
const tryMake = async (
  cluster: Cluster,
  binaries: Binaries,
  runAs: RunAs,
): Promise<string | undefined> => {
  const work = await mkdtemp(join(cluster.dataDir, workPrefix))
  try {
    await writeFile(join(work, "password"), await ensurePassword(cluster, work), { mode: 0o600 })
    await giveTo(runAs, work, join(work, "password"))
    // another user must be able to traverse the folder; secret files in it have mode 0600
    if (runAs.uid !== process.getuid?.()) await chmod(cluster.dataDir, 0o711)
    const { code, output } = await runToEnd(
      runAs,
      binaries.initdb,
      initdbArgs(cluster, work),
      initdbLimitMs,
    )
    if (code !== 0) return output.trim() || "initdb did not end"
    await rename(join(work, "home"), cluster.home)
    await flush(cluster.dataDir)
    return undefined
  } catch (error) {
    return reasonOf(error)
  } finally {
    await rm(work, { recursive: true, force: true })
  }
}

/**
 * Makes the data folder if there is none. A kill meanwhile leaves at most a folder
 * `postgres.making-*`, never half a cluster.
 */
export const makeCluster = async (cluster: Cluster, binaries: Binaries): Promise<void> => {
  if (existsSync(cluster.home)) return
  await mkdir(cluster.dataDir, { recursive: true, mode: 0o700 })
  const reasons: string[] = []
  for (const runAs of candidates(undefined)) {
    const reason = await tryMake(cluster, binaries, runAs)
    // another process may have been faster; its folder serves as well
    if (reason === undefined || existsSync(cluster.home)) return
    reasons.push(`as ${runAs.about}: ${reason}`)
  }
  throw cannotStart(
    `the embedded PostgreSQL can't be made in ${cluster.home}; set DATABASE_URL to use a server. Tried ${reasons.join("; ")}`,
  )
}

/**
 * Deletes what a kill during `makeCluster` left. Only once there is a cluster: a process that still
 * makes one will not use its own.
 */
export const removeLeftovers = async (cluster: Cluster): Promise<void> => {
  for (const name of await readdir(cluster.dataDir)) {
    // an orphaned initdb may still write there; the next start tries again
    if (name.startsWith(workPrefix))
      await rm(join(cluster.dataDir, name), { recursive: true, force: true }).catch(() => {})
  }
}
