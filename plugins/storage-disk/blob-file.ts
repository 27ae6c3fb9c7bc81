import type { BigIntStats } from "node:fs"
import { constants } from "node:fs"
import { lstat, open, rmdir, unlink } from "node:fs/promises"
import { dirname } from "node:path"
import type { BlobInfo } from "../../core/ports/storage.ts"
import { blobPath } from "./blob-path.ts"
import { codeOf, ifThere } from "./disk-errors.ts"
import { isInside } from "./inside.ts"

const chunkBytes = 65_536

export interface ByteRange {
  readonly from: number
  readonly to?: number
}

/**
 * The etag includes the inode: a new version is a new file, created while the old one exists, so it
 * differs even within one tick of the clock.
 */
export const infoOf = (key: string, { size, mtimeNs, ino }: BigIntStats): BlobInfo => ({
  key,
  bytes: Number(size),
  etag: [size, mtimeNs, ino].map((part) => part.toString(36)).join("-"),
})

const missing = (): Error => Object.assign(new Error("no such blob"), { code: "ENOENT" })

/** Fails with ENOENT where there is no regular file below `root`. */
export const statBlob = async (root: string, key: string): Promise<BlobInfo> => {
  const path = blobPath(root, key)
  const stats = await lstat(path, { bigint: true })
  if (!stats.isFile() || !(await isInside(root, path))) throw missing()
  return infoOf(key, stats)
}

/** Keeps one version of the blob open, so that a concurrent `put` does not affect this reader. */
export async function* readBlob(
  root: string,
  key: string,
  range: ByteRange,
): AsyncGenerator<Uint8Array> {
  await statBlob(root, key)
  const handle = await open(blobPath(root, key), constants.O_RDONLY | constants.O_NOFOLLOW)
  try {
    const end = Math.min(
      (await handle.stat()).size,
      range.to === undefined ? Number.POSITIVE_INFINITY : range.to + 1,
    )
    for (let position = range.from; position < end; ) {
      const chunk = new Uint8Array(Math.min(chunkBytes, end - position))
      const { bytesRead } = await handle.read(chunk, 0, chunk.byteLength, position)
      if (bytesRead === 0) throw new Error(`the file ends at byte ${position}, before its ${end}`)
      yield chunk.subarray(0, bytesRead)
      position += bytesRead
    }
  } finally {
    await handle.close()
  }
}

const isInUse = (cause: unknown): boolean => ["ENOTEMPTY", "EEXIST"].includes(codeOf(cause) ?? "")

/** Removes the empty folders above, too: otherwise `list` would get slower and slower. */
const prune = async (root: string, folder: string): Promise<void> => {
  if (folder === root) return
  const isPruned = await ifThere(
    rmdir(folder).then(
      () => true,
      (cause) => !isInUse(cause) && Promise.reject(cause),
    ),
  )
  if (isPruned !== false) await prune(root, dirname(folder))
}

export const removeBlob = async (root: string, key: string): Promise<void> => {
  const path = blobPath(root, key)
  const folder = dirname(path)
  if (!(await ifThere(isInside(root, folder)))) return
  await ifThere(unlink(path))
  await prune(root, folder)
}
