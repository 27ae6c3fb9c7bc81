import { join } from "node:path"

/**
 * Returns the path of a key's file: the key's segments are folders, and `~` marks the file, so that
 * the keys `a` and `a/b`
 * (file `a~`, folder `a`) can both exist. No key contains `~`, so none can name a file of the
 * adapter's own.
 */
export const blobPath = (root: string, key: string): string => join(root, `${key}~`)

/**
 * The folder of incoming blobs. On the same file system as the blobs, so that a rename publishes
 * them.
 */
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

/**
 * Compares by code unit, which gives the order of the whole keys below: no other entry's text
 * starts with `a/`.
 */
export const byKey = (a: FolderEntry, b: FolderEntry): number => (a.text < b.text ? -1 : 1)
