import { readdir, readFile, rm } from "node:fs/promises"
import { join } from "node:path"
import { crc32 } from "node:zlib"
import { Effect, Option, Semaphore } from "effect"
import { PortError, type Settlement } from "../../core/index.ts"
import { type JournalLimits, makeJournalFile } from "./journal-file.ts"

/**
 * Settlements on the disk of this server: those that the database could not take, and those whose
 * replies did not wait for it. They are given as lines (`lineOf`), as one is written again each time
 * that the file is rewound before it has settled.
 */
export interface SettlementJournal {
  /** Reserves its room, before there is none. */
  readonly open: Effect.Effect<void, PortError>
  /**
   * They survive the end of the process when it ends; with `flush`, as by default, a crash of the
   * machine, too. Without `flush` it ends at once, unless the journal is being flushed or emptied.
   */
  append(
    lines: readonly string[],
    options?: { readonly flush: boolean },
  ): Effect.Effect<void, PortError>
  /** What was written since it was emptied or rewound. */
  bytes(): number
  /**
   * Writes over what has settled: `counted` returns all that has not, which come first, or undefined:
   * nothing is to be done. The next start may still find what follows them. Returns whether it did;
   * not while the journal is being flushed or emptied, nor where they take more than half of it.
   */
  rewind(counted: () => readonly string[] | undefined): Effect.Effect<boolean>
  /** Forgets everything, unless something is kept again when its turn comes. */
  clear(isEmpty: () => boolean): Effect.Effect<void, PortError>
  /** The journals of other replicas, dead or living, by replica; undefined: it can't be read. */
  readonly others: Effect.Effect<ReadonlyMap<string, readonly Settlement[] | undefined>, PortError>
  /** Unless it has other settlements than `known`: its replica lives after all. */
  remove(replica: string, known: readonly Settlement[]): Effect.Effect<void, PortError>
  /** Removes the file if nothing is kept in it. */
  readonly close: Effect.Effect<void>
}

const defaults: JournalLimits = { reservedBytes: 2 ** 20, maxBytes: 64 * 2 ** 20 }
const suffix = ".jsonl"

const failed = (what: string) => (cause: unknown) =>
  new PortError({ port: "billing", message: `the journal ${what}: ${String(cause)}`, cause })

/**
 * The line of a settlement. One that is torn goes on as the older one below it did: the checksum
 * tells.
 */
export const lineOf = (item: Settlement): string => {
  const text = JSON.stringify(Object.assign({}, item, { costMicros: String(item.costMicros) }))
  return `{"crc":${crc32(text)},${text.slice(1)}\n`
}

/** Undefined: the checksum does not match. Lines of earlier versions have none. */
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

/** The files of other replicas. */
const otherFiles = (folder: string, replica: string) => {
  // one that can't be read is not empty: what it has would be lost with it
  const read = async (name: string) => {
    try {
      return settlementsIn(await readFile(join(folder, name), "utf8"))
    } catch (cause) {
      if ((cause as NodeJS.ErrnoException).code === "ENOENT") return []
      throw cause
    }
  }
  const readAll = async () => {
    const names = await readdir(folder).catch(() => [])
    const found = new Map<string, readonly Settlement[] | undefined>()
    for (const name of names) {
      if (!name.endsWith(suffix) || name === `${replica}${suffix}`) continue
      const items = await read(name).catch(() => undefined)
      found.set(name.slice(0, -suffix.length), items)
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
  limits: JournalLimits = defaults,
): SettlementJournal => {
  const file = makeJournalFile(join(folder, `${replica}${suffix}`), limits)
  const files = otherFiles(folder, replica)
  const oneAtATime = Semaphore.makeUnsafe(1)
  const trying = <A>(what: string, work: () => Promise<A>) =>
    Effect.uninterruptible(Effect.tryPromise({ try: work, catch: failed(what) }))
  const tried = <A>(what: string, work: () => Promise<A>) =>
    oneAtATime.withPermits(1)(trying(what, work))

  return {
    open: tried("can't be made", file.open),
    append: (lines, { flush } = { flush: true }) =>
      oneAtATime.withPermits(1)(
        Effect.suspend(() => {
          const bytes = Buffer.from(lines.join(""))
          if (!flush && file.appendNow(bytes)) return Effect.void
          return trying("can't be written", () => file.append(bytes, flush))
        }),
      ),
    bytes: file.bytes,
    // the fiber may yield before that, so what counts is asked for in the same step
    rewind: (counted) =>
      Effect.map(
        oneAtATime.withPermitsIfAvailable(1)(
          Effect.sync(() => {
            const lines = counted()
            return lines !== undefined && file.rewindNow(Buffer.from(lines.join("")))
          }),
        ),
        Option.getOrElse(() => false),
      ),
    clear: (isEmpty) =>
      tried("can't be emptied", async () => {
        if (isEmpty()) file.erase()
      }),
    others: trying("of another replica can't be read", files.readAll),
    remove: (other, known) =>
      trying("of another replica can't be removed", () => files.remove(other, known)),
    close: Effect.ignore(tried("can't be closed", file.close)),
  }
}
