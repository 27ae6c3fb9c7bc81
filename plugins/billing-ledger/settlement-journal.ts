import { constants, fstatSync, ftruncateSync, writeSync } from "node:fs"
import { type FileHandle, mkdir, open, readdir, readFile, rm } from "node:fs/promises"
import { join } from "node:path"
import { crc32 } from "node:zlib"
import { Effect, Semaphore } from "effect"
import { PortError, type Settlement } from "../../core/index.ts"

/** Settlements that the database could not take, on the disk of this server. */
export interface SettlementJournal {
  /** Reserves its room, before there is none. */
  readonly open: Effect.Effect<void, PortError>
  /**
   * They survive the end of the process when it ends; with `flush`, as by default, a crash of the
   * machine, too. Without it, it ends at once, unless the journal is being flushed or emptied.
   */
  append(
    items: readonly Settlement[],
    options?: { readonly flush: boolean },
  ): Effect.Effect<void, PortError>
  /** What was written since it was emptied or rewound. */
  bytes(): number
  /**
   * Writes over what has settled: `items` are all that still counts, and come first. The next start
   * may still find what follows them. Not while the journal is being flushed or emptied.
   */
  rewind(items: readonly Settlement[]): Effect.Effect<void>
  /** Forgets everything, unless something is kept again when its turn comes. */
  clear(isEmpty: () => boolean): Effect.Effect<void, PortError>
  /** The journals of other replicas, dead or living, by replica. */
  readonly others: Effect.Effect<ReadonlyMap<string, readonly Settlement[]>, PortError>
  /** Unless it has other settlements than `known`: its replica lives after all. */
  remove(replica: string, known: readonly Settlement[]): Effect.Effect<void, PortError>
  /** Removes the file if nothing is kept in it. */
  readonly close: Effect.Effect<void>
}

export interface JournalLimits {
  /** Written in advance: a full disk is no reason to lose what fits into it. */
  readonly reservedBytes: number
  readonly maxBytes: number
}

const defaults: JournalLimits = { reservedBytes: 2 ** 20, maxBytes: 64 * 2 ** 20 }
const suffix = ".jsonl"

const failed = (what: string) => (cause: unknown) =>
  new PortError({ port: "billing", message: `the journal ${what}: ${String(cause)}`, cause })

/** With a checksum, as a line that was written in part over another one goes on as that did. */
const toLine = (item: Settlement): string => {
  const text = JSON.stringify({ ...item, costMicros: String(item.costMicros) })
  return `{"crc":${crc32(text)},${text.slice(1)}\n`
}

/** Undefined: its checksum is another one. Lines of earlier versions have none. */
const checked = (line: string): string | undefined => {
  const [begin, crc] = /^\{"crc":(\d+),/.exec(line) ?? []
  if (begin === undefined) return line
  const text = `{${line.slice(begin.length)}`
  return crc32(text) === Number(crc) ? text : undefined
}

const isText = (value: unknown): value is string => typeof value === "string"

/** Undefined: the line is torn, or was never written. */
const fromLine = (line: string): Settlement | undefined => {
  try {
    const item = JSON.parse(checked(line.replaceAll("\0", "")) ?? "null")
    if (!isText(item.id) || !isText(item.outcome) || !isText(item.costMicros)) return undefined
    return { ...item, costMicros: BigInt(item.costMicros) }
  } catch {
    return undefined
  }
}

export const settlementsIn = (text: string): readonly Settlement[] =>
  text.split("\n").flatMap((line) => fromLine(line) ?? [])

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
const openFile = async (folder: string, path: string, reservedBytes: number) => {
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

const linesOf = (items: readonly Settlement[]): Buffer => Buffer.from(items.map(toLine).join(""))

const writeAll = (fd: number, bytes: Buffer, position: number): void => {
  for (let at = 0; at < bytes.length; )
    at += writeSync(fd, bytes, at, bytes.length - at, position + at)
}

/** The files of other replicas. */
const otherFiles = (folder: string, replica: string) => {
  const read = async (name: string) =>
    settlementsIn(await readFile(join(folder, name), "utf8").catch(() => ""))
  const readAll = async () => {
    const names = await readdir(folder).catch(() => [])
    const found = new Map<string, readonly Settlement[]>()
    for (const name of names) {
      if (!name.endsWith(suffix) || name === `${replica}${suffix}`) continue
      found.set(name.slice(0, -suffix.length), await read(name))
    }
    return found
  }
  const remove = async (other: string, known: readonly Settlement[]) => {
    const name = `${other}${suffix}`
    const ids = new Set(known.map(({ id }) => id))
    const isKnown = (await read(name)).every(({ id }) => ids.has(id))
    if (isKnown) await rm(join(folder, name), { force: true })
  }
  return { readAll, remove }
}

/**
 * One file for each replica, `<replica>.jsonl`: a settlement a line, then zeros. What a write left
 * half done is overwritten by the next one, and a torn line is skipped; a line that is read twice
 * settles once.
 */
export const makeSettlementJournal = (
  folder: string,
  replica: string,
  { reservedBytes, maxBytes }: JournalLimits = defaults,
): SettlementJournal => {
  const path = join(folder, `${replica}${suffix}`)
  const files = otherFiles(folder, replica)
  const oneAtATime = Semaphore.makeUnsafe(1)
  let file: FileHandle | undefined
  let bytes = 0
  /** Where what was written before `rewind` ends. */
  let oldEnd = 0

  const opened = async (): Promise<FileHandle> => {
    // another server on this folder has taken the file of a replica that seemed dead
    if (file && (await isRemoved(file))) {
      await file.close()
      file = undefined
      bytes = oldEnd = 0
    }
    file ??= await openFile(folder, path, reservedBytes)
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
  const append = async (items: readonly Settlement[], flush: boolean) => {
    const lines = linesOf(items)
    // taken while it was written: the other server may not have read these lines
    if (await isRemoved(await write(lines, flush))) await write(lines, flush)
  }
  /**
   * A few microseconds in the page cache; through the thread pool it would be as many milliseconds.
   * False: `append` has to try it, as there is no file or room, or another server has taken the file.
   */
  const appendNow = (items: readonly Settlement[]): boolean => {
    const lines = linesOf(items)
    if (!file || bytes + lines.length > maxBytes) return false
    try {
      writeAll(file.fd, lines, bytes)
    } catch {
      return false
    }
    bytes += lines.length
    return fstatSync(file.fd).nlink > 0
  }
  const rewindNow = (items: readonly Settlement[]): void => {
    const end = bytes
    bytes = 0
    if (appendNow(items)) oldEnd = Math.max(oldEnd, end)
    else bytes = end
  }
  // not flushed: what a crash of the machine brings back settles nothing twice
  const erase = async (isEmpty: () => boolean) => {
    const end = Math.max(bytes, oldEnd)
    if (end === 0 || !file || !isEmpty()) return
    if (end > reservedBytes) ftruncateSync(file.fd, reservedBytes)
    writeAll(file.fd, Buffer.alloc(Math.min(end, reservedBytes)), 0)
    bytes = oldEnd = 0
  }
  const trying = <A>(what: string, work: () => Promise<A>) =>
    Effect.uninterruptible(Effect.tryPromise({ try: work, catch: failed(what) }))
  const tried = <A>(what: string, work: () => Promise<A>) =>
    oneAtATime.withPermits(1)(trying(what, work))

  return {
    open: tried("can't be made", async () => void (await opened())),
    append: (items, { flush } = { flush: true }) =>
      oneAtATime.withPermits(1)(
        Effect.suspend(() =>
          !flush && appendNow(items)
            ? Effect.void
            : trying("can't be written", () => append(items, flush)),
        ),
      ),
    bytes: () => bytes,
    rewind: (items) =>
      Effect.asVoid(oneAtATime.withPermitsIfAvailable(1)(Effect.sync(() => rewindNow(items)))),
    clear: (isEmpty) => tried("can't be emptied", () => erase(isEmpty)),
    others: tried("of another replica can't be read", files.readAll),
    remove: (other, known) =>
      tried("of another replica can't be removed", () => files.remove(other, known)),
    close: Effect.ignore(
      tried("can't be closed", async () => {
        await file?.close()
        file = undefined
        if (bytes === 0) await rm(path, { force: true })
      }),
    ),
  }
}
