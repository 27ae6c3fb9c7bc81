import { mkdirSync, readFileSync } from "node:fs"
import { type FileHandle, open } from "node:fs/promises"
import { dirname } from "node:path"
import { Effect, type Scope } from "effect"

/** A blob that was copied and compared. The etags name the versions on both sides. */
export interface CopiedBlob {
  readonly key: string
  readonly from: string
  readonly to: string
  readonly bytes: number
  readonly sha256: string
}

export interface CopyJournal {
  find(key: string): CopiedBlob | undefined
  record(blob: CopiedBlob): Effect.Effect<void, Error>
}

const texts = ["key", "from", "to", "sha256"] as const

const isEntry = (value: unknown): value is CopiedBlob =>
  typeof value === "object" &&
  value !== null &&
  texts.every((name) => typeof (value as Record<string, unknown>)[name] === "string") &&
  Number.isSafeInteger((value as Record<string, unknown>).bytes)

/** What a line holds; undefined for one that a kill or a power cut tore. */
const parsed = (line: string): CopiedBlob | undefined => {
  try {
    const value: unknown = JSON.parse(line)
    return isEntry(value) ? value : undefined
  } catch {
    return undefined
  }
}

const readEntries = (file: string): Map<string, CopiedBlob> => {
  let text: string
  try {
    text = readFileSync(file, "utf8")
  } catch (cause) {
    if ((cause as { code?: string }).code === "ENOENT") return new Map()
    throw cause
  }
  const entries = text.split("\n").flatMap((line) => parsed(line) ?? [])
  return new Map(entries.map((entry) => [entry.key, entry]))
}

const failed = (file: string) => (cause: unknown) =>
  new Error(
    `The journal ${file} can't be used: ${(cause as Error).message}. Fix: name another file with --journal.`,
  )

/**
 * Opens the list of what has been copied, lines of JSON that are only appended to. A lost line
 * costs a comparison, never a wrong copy: an entry counts only where both etags still hold.
 */
export const openJournal = (file: string): Effect.Effect<CopyJournal, Error, Scope.Scope> => {
  const attempt = <A>(work: () => Promise<A>) =>
    Effect.tryPromise({ try: work, catch: failed(file) })
  const opened = attempt(async () => {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
    const entries = readEntries(file)
    const handle = await open(file, "a", 0o600)
    // the last line may have been torn
    if ((await handle.stat()).size > 0) await handle.appendFile("\n")
    return { entries, handle }
  })
  const close = ({ handle }: { readonly handle: FileHandle }) =>
    Effect.promise(() => handle.close())
  return Effect.map(Effect.acquireRelease(opened, close), ({ entries, handle }) => ({
    find: (key) => entries.get(key),
    record: (blob) => {
      entries.set(blob.key, blob)
      return attempt(() => handle.appendFile(`${JSON.stringify(blob)}\n`))
    },
  }))
}
