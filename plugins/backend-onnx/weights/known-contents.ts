import { createHash, randomBytes } from "node:crypto"
import {
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs"
import { join } from "node:path"
import { type Content, contentOf } from "./content-digest.ts"

type Progress = (readBytes: number, ofBytes: number) => void

const leastBytes = 8 * 2 ** 20
const mostRecords = 1_000

/**
 * What a file system says of a file's state. Every write gives it another time of change, which,
 * unlike that of modification, nobody can set.
 */
const stateOf = (path: string): { readonly name: string; readonly changedMs: number } => {
  const { dev, ino, size, mtimeNs, ctimeNs } = statSync(path, { bigint: true })
  const state = [dev, ino, size, mtimeNs, ctimeNs].join(" ")
  const name = createHash("sha256").update(state).digest("hex").slice(0, 32)
  return { name, changedMs: Number(ctimeNs / 1_000_000n) }
}

const recorded = (path: string): Content | undefined => {
  try {
    const { bytes, sha256 } = JSON.parse(readFileSync(path, "utf8")) as Content
    return typeof bytes === "number" && typeof sha256 === "string" ? { bytes, sha256 } : undefined
  } catch {
    return undefined
  }
}

/**
 * Digests of large files by their state, in a folder, so that a start doesn't read again what an
 * earlier one read. Files that were written in this very moment are not remembered, as a second
 * write within one tick of the file system's clock leaves no trace.
 */
export class KnownContents {
  private readonly folder: string
  private readonly options: { readonly leastBytes: number; readonly tickMs: number }

  constructor(folder: string, options = { leastBytes, tickMs: 100 }) {
    this.folder = folder
    this.options = options
  }

  /** The same as `contentOf`. Blocks the thread: for workers only. */
  of(path: string, progress?: Progress): Content {
    const before = stateOf(path)
    const record = join(this.folder, before.name)
    const known = recorded(record)
    if (known) return known
    const isLarge = statSync(path).size >= this.options.leastBytes
    const aside = isLarge ? this.aside(before.changedMs) : undefined
    const content = contentOf(path, progress)
    if (aside) this.keep(aside, record, stateOf(path).name === before.name ? content : undefined)
    return content
  }

  /**
   * An empty file, whose time is now by the file system's clock; undefined where the change is too
   * recent, or nothing can be written.
   */
  private aside(changedMs: number): string | undefined {
    try {
      mkdirSync(this.folder, { recursive: true, mode: 0o700 })
      const records = readdirSync(this.folder)
      if (records.length >= mostRecords) for (const name of records) rmSync(join(this.folder, name))
      const path = join(this.folder, `new-${randomBytes(8).toString("hex")}`)
      writeFileSync(path, "")
      if (stateOf(path).changedMs - changedMs > this.options.tickMs) return path
      rmSync(path)
    } catch {
      // the next start reads the file again
    }
    return undefined
  }

  private keep(aside: string, record: string, content: Content | undefined): void {
    try {
      if (content) {
        writeFileSync(aside, JSON.stringify(content))
        renameSync(aside, record)
      } else rmSync(aside)
    } catch {
      // as above
    }
  }
}
