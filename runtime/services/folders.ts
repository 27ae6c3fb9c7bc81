import { randomBytes } from "node:crypto"
import { closeSync, fsyncSync, linkSync, openSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { makeFolders } from "../../core/folders.ts"

/** More than file systems put into the entry of a small file. */
const probeBytes = 65_536

/** Does what the data need: writes a file, flushes it to the disk, and gives it a second name. */
const tryFolder = (folder: string): void => {
  const probe = join(folder, `.probe-${process.pid}-${randomBytes(4).toString("hex")}`)
  const file = openSync(probe, "wx", 0o600)
  try {
    // the whole of it: `writeSync` writes what fits
    writeFileSync(file, Buffer.alloc(probeBytes))
    fsyncSync(file)
    linkSync(probe, `${probe}.link`)
  } finally {
    closeSync(file)
    rmSync(`${probe}.link`, { force: true })
    rmSync(probe, { force: true })
  }
}

const reasons: Readonly<Record<string, string>> = {
  EACCES: "permission denied",
  EPERM: "the file system does not permit it",
  EROFS: "the file system is read-only",
  ENOSPC: "the disk is full",
  EDQUOT: "the disk quota is used up",
  ENOTDIR: "a part of the path is no folder",
  EEXIST: "it is no folder",
  ENOENT: "nothing can be made there",
  ELOOP: "its links lead in a circle",
  ENAMETOOLONG: "the path is too long",
  EINVAL: "the file system can't flush files to the disk",
  EIO: "the disk fails",
}

/** `permission denied (EACCES)` */
export const folderTrouble = (cause: unknown): string => {
  const { code = "unknown", syscall } = cause as NodeJS.ErrnoException
  if (syscall === "link") return `the file system has no hard links (${code})`
  return `${reasons[code] ?? "it can't be used"} (${code})`
}

/** Makes a private folder, and throws unless data can be kept there. */
export const makeDataFolder = (folder: string): void => {
  makeFolders(folder, 0o700)
  tryFolder(folder)
}
