import { mkdir, rm, stat } from "node:fs/promises"
import { DamagedContent, SourceFailed } from "../failure.ts"
import type { ManifestFile } from "../store/manifest.ts"
import { isSystemError } from "../system-error.ts"
import { makeUnpackSink, type UnpackLimits, usualLimits } from "./sink.ts"
import { unpackTgz } from "./tgz.ts"
import { unpackZip } from "./zip.ts"

export interface UnpackOptions {
  readonly archive: string
  readonly form: "zip" | "tgz"
  /** Emptied first. */
  readonly into: string
  readonly signal: AbortSignal
  readonly limits?: UnpackLimits
}

/** Codes of the archive's own content (two entries in one place, a file used as a folder), not of the disk. */
const ofContent = new Set(["EEXIST", "ENOTDIR", "EISDIR", "ENAMETOOLONG"])

const asDamage = (error: unknown): unknown => {
  if (
    error instanceof SourceFailed ||
    (isSystemError(error) && "syscall" in error && !ofContent.has(error.code))
  )
    return error
  return new DamagedContent(
    `the archive is damaged: ${error instanceof Error ? error.message : String(error)}`,
  )
}

/** Unpacks all files of an archive and hashes them on the way. Fails with `DamagedContent` when the archive is broken, hostile or too large. */
export const unpack = async ({
  archive,
  form,
  into,
  signal,
  limits,
}: UnpackOptions): Promise<readonly ManifestFile[]> => {
  await rm(into, { recursive: true, force: true })
  await mkdir(into, { recursive: true })
  const sink = makeUnpackSink(into, limits ?? usualLimits((await stat(archive)).size))
  try {
    await (form === "zip" ? unpackZip : unpackTgz)(archive, sink, signal)
  } catch (error) {
    if (signal.aborted) throw signal.reason
    throw asDamage(error)
  }
  if (sink.files.length === 0) throw new DamagedContent("the archive is empty")
  return sink.files
}
