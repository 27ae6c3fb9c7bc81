import { createHash, type Hash } from "node:crypto"
import { constants } from "node:fs"
import { type FileHandle, open, readFile, rm } from "node:fs/promises"
import { Result, Schema } from "effect"
import { hashInto } from "../store/digest.ts"
import { writeWhole } from "../store/disk.ts"

const Validator = Schema.Struct({
  url: Schema.String,
  etag: Schema.optionalKey(Schema.String),
  lastModified: Schema.optionalKey(Schema.String),
  totalBytes: Schema.optionalKey(Schema.Finite),
})
/** The version of the file that the bytes of a part belong to. */
export type PartValidator = typeof Validator.Type

const decodeValidator = Schema.decodeUnknownResult(Schema.fromJsonString(Validator))

export const validatorPath = (partPath: string): string => `${partPath}.json`

export const readValidator = async (partPath: string): Promise<PartValidator | undefined> => {
  const decoded = decodeValidator(await readFile(validatorPath(partPath), "utf8").catch(() => ""))
  return Result.isSuccess(decoded) ? decoded.success : undefined
}

export const removePart = async (partPath: string): Promise<void> => {
  await rm(partPath, { force: true })
  await rm(validatorPath(partPath), { force: true })
}

/** A partial download, hashed as it grows. */
export interface PartFile {
  bytes(): number
  validator(): PartValidator | undefined
  /** Discards the bytes. */
  restart(validator: PartValidator): Promise<void>
  append(chunk: Uint8Array): Promise<void>
  /** Digest of the bytes so far, in hex. */
  sha256(): string
  /** Flushes to the disk (fsync). */
  sync(): Promise<void>
  close(): Promise<void>
}

const writeAll = async (handle: FileHandle, chunk: Uint8Array, position: number): Promise<void> => {
  let written = 0
  while (written < chunk.length)
    written += (await handle.write(chunk, written, chunk.length - written, position + written))
      .bytesWritten
}

const makePart = (
  path: string,
  handle: FileHandle,
  start: { bytes: number; hash: Hash; validator: PartValidator | undefined },
): PartFile => {
  let { bytes, hash, validator } = start
  return {
    bytes: () => bytes,
    validator: () => validator,
    restart: async (next) => {
      await handle.truncate(0)
      bytes = 0
      hash = createHash("sha256")
      // its URL may hold a password
      await writeWhole(validatorPath(path), JSON.stringify(next), 0o600)
      validator = next
    },
    append: async (chunk) => {
      await writeAll(handle, chunk, bytes)
      bytes += chunk.length
      hash.update(chunk)
    },
    sha256: () => hash.copy().digest("hex"),
    sync: () => handle.sync(),
    close: () => handle.close(),
  }
}

/** Opens the part of an earlier try, or an empty one. Bytes from another URL are discarded. */
export const openPart = async (
  path: string,
  url: string,
  signal: AbortSignal,
): Promise<PartFile> => {
  const known = await readValidator(path)
  const validator = known?.url === url ? known : undefined
  const { O_RDWR, O_CREAT, O_TRUNC } = constants
  const handle = await open(path, O_RDWR | O_CREAT | (validator === undefined ? O_TRUNC : 0))
  try {
    const hash = createHash("sha256")
    await hashInto(hash, path, signal)
    return makePart(path, handle, { bytes: (await handle.stat()).size, hash, validator })
  } catch (error) {
    await handle.close()
    throw error
  }
}
