import { createHash } from "node:crypto"
import { once } from "node:events"
import { createReadStream, createWriteStream, mkdirSync } from "node:fs"
import { dirname, join } from "node:path"
import { pipeline } from "node:stream/promises"
import { createGunzip, createGzip } from "node:zlib"
import type { WrittenFile } from "./manifest.ts"

export interface LinesFile {
  write(values: readonly unknown[]): Promise<void>
  close(): Promise<WrittenFile>
}

/** Opens a new file of JSON lines, compressed with gzip, that only its owner can read. */
export const writeLines = (folder: string, file: string): LinesFile => {
  const path = join(folder, file)
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  const gzip = createGzip({ level: 4 })
  const hash = createHash("sha256")
  let bytes = 0
  const done = pipeline(
    gzip,
    async function* (chunks: AsyncIterable<Buffer>) {
      for await (const chunk of chunks) {
        hash.update(chunk)
        bytes += chunk.byteLength
        yield chunk
      }
    },
    createWriteStream(path, { flags: "wx", mode: 0o600, flush: true }),
  )
  // the failure is seen by the next write, or by close
  done.catch(() => {})
  return {
    write: async (values) => {
      const text = values.map((value) => `${JSON.stringify(value)}\n`).join("")
      if (!gzip.write(text)) await Promise.race([once(gzip, "drain"), done])
    },
    close: async () => {
      gzip.end()
      await done
      return { file, bytes, sha256: hash.digest("hex") }
    },
  }
}

/** The values of such a file. Lines end at `\n` only: JSON may hold other line separators. */
export async function* readLines(folder: string, { file }: WrittenFile): AsyncGenerator<unknown> {
  const gunzip = createGunzip()
  const fed = pipeline(createReadStream(join(folder, file)), gunzip)
  fed.catch(() => {})
  let rest = ""
  for await (const text of gunzip.setEncoding("utf8")) {
    const lines = (rest + text).split("\n")
    rest = lines.pop() ?? ""
    for (const line of lines) yield JSON.parse(line)
  }
  await fed
}

const digestOf = async (path: string) => {
  const hash = createHash("sha256")
  let bytes = 0
  for await (const chunk of createReadStream(path) as AsyncIterable<Buffer>) {
    hash.update(chunk)
    bytes += chunk.byteLength
  }
  return { bytes, sha256: hash.digest("hex") }
}

/** Rejects with an Error for people unless the file is there, whole and unchanged. */
export const verifyFile = async (folder: string, file: WrittenFile): Promise<void> => {
  const found = await digestOf(join(folder, file.file)).catch(() => undefined)
  if (found?.bytes === file.bytes && found.sha256 === file.sha256) return
  throw new Error(
    `The backup is damaged: ${file.file} ${found ? "was changed after it was written" : "is missing"}. Nothing was restored. Fix: take another backup.`,
  )
}
