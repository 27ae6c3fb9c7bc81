import { open, rename, rm, statfs, writeFile } from "node:fs/promises"
import type { PullContext } from "../context.ts"
import { SourceFailed } from "../failure.ts"
import { isSystemError } from "../system-error.ts"

const texts: Readonly<Record<string, string>> = {
  ENOSPC: "the disk is full",
  EDQUOT: "the disk quota is used up",
  EACCES: "permission denied",
  EPERM: "permission denied",
  EROFS: "the file system is read-only",
}

/** Runs file operations; a system error becomes a `SourceFailed` with a readable reason. */
export const onDisk = async <A>(path: string, work: () => Promise<A>): Promise<A> => {
  try {
    return await work()
  } catch (error) {
    if (!isSystemError(error) || !("syscall" in error)) throw error
    throw new SourceFailed(`can't write ${path}: ${texts[error.code] ?? error.message}`)
  }
}

export const freeBytes = async (folder: string): Promise<number> => {
  const { bavail, bsize } = await statfs(folder)
  return bavail * bsize
}

const megabytes = (bytes: number): string => (bytes / 1e6).toFixed(1)

/** Fails before the disk is filled, as others (the database) may use it too. */
export const ensureRoom = async (
  context: PullContext,
  folder: string,
  neededBytes: number,
): Promise<void> => {
  const free = await context.freeBytes(folder)
  if (free < neededBytes)
    throw new SourceFailed(
      `not enough room in ${folder}: ${megabytes(neededBytes)} MB needed, ${megabytes(free)} MB free`,
    )
}

/** Makes a rename or a new name in this folder survive a power failure. */
export const syncFolder = async (folder: string): Promise<void> => {
  const handle = await open(folder, "r")
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

/** Replaces a file atomically: all of the new text or all of the old. */
export const writeWhole = async (path: string, text: string, mode = 0o666): Promise<void> => {
  const next = `${path}.${process.pid}.new`
  try {
    await writeFile(next, text, { flush: true, mode })
    await rename(next, path)
  } catch (error) {
    await rm(next, { force: true })
    throw error
  }
}
