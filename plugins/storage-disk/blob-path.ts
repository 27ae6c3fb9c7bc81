import { join } from "node:path"

/**
 * Where a key lies: its segments are folders, and `~` marks the file, so that the keys `a` and `a/b` (file `a~`, folder `a`) stand side by side.
 * No key has a `~`, so nothing of ours can be hit by one.
 */
export const blobPath = (root: string, key: string): string => join(root, `${key}~`)

/** Blobs on their way in. On the same file system as the blobs, so that a rename publishes them. */
export const incomingFolder = (root: string): string => join(root, "~incoming")

export interface FolderEntry {
  readonly name: string
  /** What the entry adds to a key: `a` for the file `a~`, `a/` for the folder `a`. */
  readonly text: string
  readonly isFolder: boolean
}

export const fileEntry = (name: string): FolderEntry => ({
  name,
  text: name.slice(0, -1),
  isFolder: false,
})
export const folderEntry = (name: string): FolderEntry => ({
  name,
  text: `${name}/`,
  isFolder: true,
})

/** By code unit, which is the order of the whole keys below them: no text but an equal one starts with `a/`. */
export const byKey = (a: FolderEntry, b: FolderEntry): number => (a.text < b.text ? -1 : 1)
