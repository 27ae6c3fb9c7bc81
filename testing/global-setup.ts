import { mkdtemp, readdir, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { folderVariable, serverVariable, stopTestServer } from "./postgres-server.ts"

const prefix = "rakit-test-"

const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

const remove = async (folder: string): Promise<void> => {
  await stopTestServer(folder)
  await rm(folder, { recursive: true, force: true })
}

/**
 * Stops the servers of test runs that were killed; the folder's name holds the process id of its
 * run.
 */
const sweep = async (): Promise<void> => {
  for (const name of await readdir(tmpdir())) {
    const pid = Number(
      name.startsWith(prefix) ? name.slice(prefix.length).split("-")[0] : Number.NaN,
    )
    if (pid > 0 && !isAlive(pid)) await remove(join(tmpdir(), name)).catch(() => {})
  }
}

/**
 * Only names a folder: the embedded server starts when the first test file needs it, and is stopped
 * here.
 */
export const setup = async (): Promise<(() => Promise<void>) | undefined> => {
  if (process.env[serverVariable]) return undefined
  await sweep()
  const folder = await mkdtemp(join(tmpdir(), `${prefix}${process.pid}-`))
  process.env[folderVariable] = folder
  return () => remove(folder)
}
