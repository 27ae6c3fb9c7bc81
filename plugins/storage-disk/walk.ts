import type { Dirent } from "node:fs"
import { lstat, readdir } from "node:fs/promises"
import { join } from "node:path"
import { type BlobInfo, isBlobKey } from "../../core/ports/storage.ts"
import { infoOf } from "./blob-file.ts"
import { byKey, type FolderEntry, fileEntry, folderEntry } from "./blob-path.ts"
import { ifThere } from "./disk-errors.ts"
import { isInside } from "./inside.ts"

const entryOf = (found: Dirent): FolderEntry | undefined => {
  if (found.isFile() && found.name.endsWith("~")) return fileEntry(found.name)
  return found.isDirectory() && !found.name.includes("~") ? folderEntry(found.name) : undefined
}

const entriesOf = async (folder: string): Promise<readonly FolderEntry[]> => {
  const found = (await ifThere(readdir(folder, { withFileTypes: true }))) ?? []
  return found.flatMap((entry) => entryOf(entry) ?? []).sort(byKey)
}

/**
 * Walks depth first, which is key order. Holds only the names of the folders on the path. `at` is
 * the part of the keys above `folder`.
 */
async function* walk(folder: string, at: string, prefix: string): AsyncGenerator<BlobInfo> {
  for (const { name, text, isFolder } of await entriesOf(folder)) {
    const key = at + text
    if (!key.startsWith(prefix)) continue
    if (isFolder) yield* walk(join(folder, name), key, prefix)
    else {
      const stats = await ifThere(lstat(join(folder, name), { bigint: true }))
      if (stats?.isFile() && isBlobKey(key)) yield infoOf(key, stats)
    }
  }
}

/** Starts in the prefix's folder, so that a list of one account does not read the names of all. */
export async function* listBlobs(root: string, prefix: string): AsyncGenerator<BlobInfo> {
  const at = prefix.slice(0, prefix.lastIndexOf("/") + 1)
  const folder = at.slice(0, -1)
  if (at !== "" && !isBlobKey(folder)) return
  const start = join(root, folder)
  if (await ifThere(isInside(root, start))) yield* walk(start, at, prefix)
}
