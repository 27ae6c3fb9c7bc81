import { constants, fstatSync, ftruncateSync, writeSync } from "node:fs"
import { type FileHandle, mkdir, open, rm } from "node:fs/promises"
import { dirname } from "node:path"

export interface JournalLimits {
  /** Written in advance: a full disk is no reason to lose what fits into it. */
  readonly reservedBytes: number
  readonly maxBytes: number
}

/** Lines one after the other, then zeros. Only `appendNow` and `rewindNow` may be called at once. */
export interface JournalFile {
  /** Makes the file, or makes it again where another server has taken it. */
  open(): Promise<void>
  append(lines: Buffer, flush: boolean): Promise<void>
  /**
   * A few microseconds in the page cache; through the thread pool it would be as many milliseconds.
   * False: `append` has to try it, as there is no file or room, or another server has taken the file.
   */
  appendNow(lines: Buffer): boolean
  /**
   * Writes from the front again; killed at any moment, all of `lines` are in the file. False: they
   * take more than half of what is there, or the disk does not take them.
   */
  rewindNow(lines: Buffer): boolean
  /** Where the next line goes. */
  bytes(): number
  erase(): void
  /** Removes the file if nothing is in it. */
  close(): Promise<void>
}

/** A new file survives a crash of the machine only once its folder is on the disk, too. */
const syncFolder = async (folder: string) => {
  const handle = await open(folder, constants.O_RDONLY)
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

/** Fills what is missing of the reserved bytes, as far as there is room. */
const reserve = async (handle: FileHandle, reservedBytes: number) => {
  const { size } = await handle.stat()
  const missing = Buffer.alloc(Math.max(0, reservedBytes - size))
  await handle.write(missing, 0, missing.length, size).catch(() => {})
}

/** Lines go over the reserved zeros: files of most file systems need no new room for that. */
const openFile = async (path: string, reservedBytes: number) => {
  const folder = dirname(path)
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const handle = await open(path, constants.O_RDWR | constants.O_CREAT, 0o600)
  try {
    await reserve(handle, reservedBytes)
    await handle.sync()
    await syncFolder(folder)
    return handle
  } catch (cause) {
    await handle.close()
    throw cause
  }
}

const isRemoved = async (file: FileHandle): Promise<boolean> => (await file.stat()).nlink === 0

const writeAll = (fd: number, bytes: Buffer, position: number): void => {
  for (let at = 0; at < bytes.length; )
    at += writeSync(fd, bytes, at, bytes.length - at, position + at)
}

export const makeJournalFile = (
  path: string,
  { reservedBytes, maxBytes }: JournalLimits,
): JournalFile => {
  let file: FileHandle | undefined
  let bytes = 0
  /** Where what was written before the file was rewound ends. */
  let oldEnd = 0

  const opened = async (): Promise<FileHandle> => {
    // another server on this folder has taken the file of a replica that seemed dead
    if (file && (await isRemoved(file))) {
      await file.close()
      file = undefined
      bytes = oldEnd = 0
    }
    file ??= await openFile(path, reservedBytes)
    return file
  }
  const write = async (lines: Buffer, flush: boolean) => {
    if (bytes + lines.length > maxBytes) throw new Error(`it has ${bytes} bytes already`)
    const handle = await opened()
    for (let at = 0; at < lines.length; )
      at += (await handle.write(lines, at, lines.length - at, bytes + at)).bytesWritten
    if (flush) await handle.datasync()
    bytes += lines.length
    return handle
  }
  const writeAt = (lines: Buffer, position: number): boolean => {
    if (!file || position + lines.length > maxBytes) return false
    try {
      writeAll(file.fd, lines, position)
      bytes = position + lines.length
      return fstatSync(file.fd).nlink > 0
    } catch {
      return false
    }
  }
  return {
    open: async () => void (await opened()),
    append: async (lines, flush) => {
      // taken while it was written: the other server may not have read these lines
      if (await isRemoved(await write(lines, flush))) await write(lines, flush)
    },
    appendNow: (lines) => writeAt(lines, bytes),
    rewindNow: (lines) => {
      const end = bytes
      // a copy first, as some may be written over themselves
      if (lines.length > end / 2 || !writeAt(lines, end)) {
        bytes = end
        return false
      }
      oldEnd = Math.max(oldEnd, bytes)
      if (writeAt(lines, 0)) return true
      bytes = end + lines.length
      return false
    },
    bytes: () => bytes,
    // not flushed: a line that a crash of the machine brings back settles once, as its id is known
    erase: () => {
      const end = Math.max(bytes, oldEnd)
      if (end === 0 || !file) return
      if (end > reservedBytes) ftruncateSync(file.fd, reservedBytes)
      writeAll(file.fd, Buffer.alloc(Math.min(end, reservedBytes)), 0)
      bytes = oldEnd = 0
    },
    close: async () => {
      await file?.close()
      file = undefined
      if (bytes === 0) await rm(path, { force: true })
    },
  }
}
