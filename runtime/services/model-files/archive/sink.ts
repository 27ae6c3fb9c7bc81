import { createHash } from "node:crypto"
import { mkdir, open } from "node:fs/promises"
import { dirname, join } from "node:path"
import { DamagedContent } from "../failure.ts"
import { isSafePath } from "../safe-path.ts"
import type { ManifestFile } from "../store/manifest.ts"

export interface UnpackLimits {
  readonly files: number
  readonly bytes: number
}

/** Weights hardly compress: an archive that unpacks to 200 times its size is hostile. */
export const defaultUnpackLimits = (archiveBytes: number): UnpackLimits => ({
  files: 50_000,
  bytes: archiveBytes * 200 + 64 * 1024 * 1024,
})

/**
 * Writes the files of an archive. Refuses paths that leave the folder, duplicate names, and too
 * many files or bytes.
 */
export interface UnpackSink {
  readonly files: readonly ManifestFile[]
  /** Checks an entry before it is written. Throws `DamagedContent`. */
  check(path: string, announcedBytes: number): void
  /** Throws `DamagedContent` for more unpacked bytes than allowed. */
  bound(bytes: number): void
  write(path: string, chunks: AsyncIterable<Uint8Array>): Promise<void>
}

const writeFlushed = async (
  target: string,
  chunks: AsyncIterable<Uint8Array>,
  count: (bytes: number) => void,
): Promise<{ bytes: number; sha256: string }> => {
  const hash = createHash("sha256")
  let bytes = 0
  const handle = await open(target, "wx")
  try {
    for await (const chunk of chunks) {
      count(chunk.length)
      await handle.appendFile(chunk)
      hash.update(chunk)
      bytes += chunk.length
    }
    await handle.sync()
  } finally {
    await handle.close()
  }
  return { bytes, sha256: hash.digest("hex") }
}

export const makeUnpackSink = (root: string, limits: UnpackLimits): UnpackSink => {
  const files: ManifestFile[] = []
  const seen = new Set<string>()
  let total = 0
  let announced = 0
  const bound = (bytes: number) => {
    if (bytes > limits.bytes)
      throw new DamagedContent(`the archive unpacks to more than ${limits.bytes} bytes`)
  }
  return {
    files,
    bound,
    check: (path, announcedBytes) => {
      if (!isSafePath(path))
        throw new DamagedContent(`the archive holds an unsafe path: ${JSON.stringify(path)}`)
      // on a case-insensitive file system these would be one file
      const folded = path.normalize("NFC").toLowerCase()
      if (seen.has(folded))
        throw new DamagedContent(`the archive holds ${JSON.stringify(path)} twice`)
      seen.add(folded)
      if (seen.size > limits.files)
        throw new DamagedContent(`the archive holds more than ${limits.files} files`)
      announced += announcedBytes
      bound(announced)
    },
    write: async (path, chunks) => {
      const target = join(root, path)
      await mkdir(dirname(target), { recursive: true })
      const count = (bytes: number) => {
        total += bytes
        bound(total)
      }
      files.push({ path, ...(await writeFlushed(target, chunks, count)) })
    },
  }
}
