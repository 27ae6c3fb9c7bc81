import { createHash, type Hash } from "node:crypto"
import { createReadStream } from "node:fs"
import { readFile, stat } from "node:fs/promises"
import { join } from "node:path"
import { Result, Schema } from "effect"
import { makeFolders } from "../../../../core/folders.ts"
import { writeWhole } from "./disk.ts"

/** Feeds the file's bytes into the hash. */
export const hashInto = async (hash: Hash, path: string, signal: AbortSignal): Promise<void> => {
  for await (const chunk of createReadStream(path, { highWaterMark: 1 << 20, signal }))
    hash.update(chunk)
}

/** Returns the digest in hex. */
export const sha256OfFile = async (path: string, signal: AbortSignal): Promise<string> => {
  const hash = createHash("sha256")
  await hashInto(hash, path, signal)
  return hash.digest("hex")
}

/** The digest of a folder: SHA-256 of what `sha256sum` prints for its files, sorted by path. */
export const treeDigest = (
  files: readonly { readonly path: string; readonly sha256: string }[],
): string => {
  const sorted = [...files].sort((a, b) => Buffer.compare(Buffer.from(a.path), Buffer.from(b.path)))
  return createHash("sha256")
    .update(sorted.map(({ path, sha256 }) => `${sha256}  ${path}\n`).join(""))
    .digest("hex")
}

const CachedDigest = Schema.fromJsonString(
  Schema.Struct({ bytes: Schema.Finite, mtimeMs: Schema.Finite, sha256: Schema.String }),
)
const decodeCachedDigest = Schema.decodeUnknownResult(CachedDigest)

/**
 * The SHA-256 of a local file, cached under `cacheDir` for as long as its size and mtime stay the
 * same.
 */
export const cachedDigest = async (
  cacheDir: string,
  path: string,
  signal: AbortSignal,
): Promise<string> => {
  const { size: bytes, mtimeMs } = await stat(path)
  const note = join(
    cacheDir,
    `${createHash("sha256").update(path).digest("hex").slice(0, 32)}.json`,
  )
  const known = decodeCachedDigest(await readFile(note, "utf8").catch(() => ""))
  if (Result.isSuccess(known) && known.success.bytes === bytes && known.success.mtimeMs === mtimeMs)
    return known.success.sha256
  const sha256 = await sha256OfFile(path, signal)
  // a cache that can't be written (a read-only models folder) costs only time
  await Promise.resolve(cacheDir)
    .then(makeFolders)
    .then(() => writeWhole(note, JSON.stringify({ bytes, mtimeMs, sha256 })))
    .catch(() => {})
  return sha256
}
