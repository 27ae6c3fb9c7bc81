import { randomUUID } from "node:crypto"
import type { FileHandle } from "node:fs/promises"
import { mkdir, open, readdir, rename, rm, stat } from "node:fs/promises"
import { dirname, join } from "node:path"
import type { BlobInfo } from "../../core/ports/storage.ts"
import { infoOf } from "./blob-file.ts"
import { blobPath, incomingFolder } from "./blob-path.ts"
import { codeOf, ifThere } from "./disk-errors.ts"
import { isInside } from "./inside.ts"

/** An incoming blob. */
export interface Incoming {
  readonly path: string
  readonly handle: FileHandle
}

export const openIncoming = async (root: string): Promise<Incoming> => {
  const path = join(incomingFolder(root), randomUUID())
  return { path, handle: await open(path, "wx", 0o600) }
}

/** Repeats short writes, which a nearly full disk causes. */
export const append = async ({ handle }: Incoming, chunk: Uint8Array): Promise<void> => {
  let done = 0
  while (done < chunk.byteLength) done += (await handle.write(chunk, done)).bytesWritten
}

const syncFolder = async (folder: string): Promise<void> => {
  const handle = await open(folder, "r")
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

/** A rename or a new folder survives a power cut once its parent folder is synced. */
const syncUpTo = async (folder: string, top: string): Promise<void> => {
  await syncFolder(folder)
  if (folder !== top) await syncUpTo(dirname(folder), top)
}

const makeOne = (folder: string): Promise<void> =>
  mkdir(folder, { mode: 0o700 }).catch((cause) => {
    if (codeOf(cause) !== "EEXIST") throw cause
  })

/**
 * Returns the topmost folder that had to be created, if any. Creates none behind a symbolic link.
 */
const makeFolder = async (root: string, folder: string): Promise<string | undefined> => {
  const found = await ifThere(isInside(root, folder))
  if (found === true) return undefined
  if (found === false) throw new Error(`${folder} is a symbolic link, or not below ${root}`)
  const topmost = await makeFolder(root, dirname(folder))
  await makeOne(folder)
  return topmost ?? folder
}

const moveTo = async (path: string, root: string, target: string): Promise<string | undefined> => {
  const topmost = await makeFolder(root, dirname(target))
  await rename(path, target)
  return topmost
}

const maxMoves = 20

/** Tries again when a concurrent `remove` has deleted the empty folder. */
const moveWithRetries = async (
  path: string,
  root: string,
  target: string,
): Promise<string | undefined> => {
  for (let move = 1; ; move++) {
    try {
      return await moveTo(path, root, target)
    } catch (cause) {
      if (codeOf(cause) !== "ENOENT" || move === maxMoves) throw cause
    }
  }
}

/** Syncs the file and publishes it under its key, durably. */
export const publish = async (
  { path, handle }: Incoming,
  root: string,
  key: string,
): Promise<BlobInfo> => {
  await handle.sync()
  const target = blobPath(root, key)
  const topmost = await moveWithRetries(path, root, target)
  await ifThere(syncUpTo(dirname(target), dirname(topmost ?? target)))
  // from the handle, as the path may already be a newer blob
  return infoOf(key, await handle.stat({ bigint: true }))
}

/** Closes and deletes the file. After `publish` only the handle is left to close. */
export const discard = async ({ path, handle }: Incoming): Promise<void> => {
  await handle.close()
  await rm(path, { force: true })
}

/**
 * Deletes the incoming files of dead processes. Other processes may share the folder, so only files
 * without a write for
 * `idleMs` go. Returns the number of deleted files.
 */
export const sweep = async (root: string, nowMs: number, idleMs: number): Promise<number> => {
  let swept = 0
  for (const name of await readdir(incomingFolder(root))) {
    const path = join(incomingFolder(root), name)
    const found = await stat(path).catch(() => undefined)
    if (found === undefined || nowMs - found.mtimeMs < idleMs) continue
    await rm(path, { force: true, recursive: true })
    swept++
  }
  return swept
}
