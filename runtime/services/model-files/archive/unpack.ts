import { mkdir, rm, stat } from "node:fs/promises"
import { DamagedContent, SourceFailed } from "../failure.ts"
import type { ManifestFile } from "../store/manifest.ts"
import { isSystemError } from "../system-error.ts"
import { defaultUnpackLimits, makeUnpackSink, type UnpackLimits } from "./sink.ts"

export interface UnpackOptions {
  readonly archive: string
  readonly form: "zip" | "tgz"
  /** Emptied first. */
  readonly into: string
  readonly signal: AbortSignal
  readonly limits?: UnpackLimits
}

/**
 * System errors that the archive's content causes (two entries with one path, a file used as a
 * folder), not the disk.
 */
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

/** The libraries of archives are loaded when one is unpacked. */
const unpackerOf = async (form: UnpackOptions["form"]) =>
  form === "zip" ? (await import("./zip.ts")).unpackZip : (await import("./tgz.ts")).unpackTgz

/**
 * Unpacks and hashes all files of an archive. Fails with `DamagedContent` when it is broken,
 * hostile or too large.
 */
export const unpack = async ({
  archive,
  form,
  into,
  signal,
  limits,
}: UnpackOptions): Promise<readonly ManifestFile[]> => {
  await rm(into, { recursive: true, force: true })
  await mkdir(into, { recursive: true })
  const sink = makeUnpackSink(into, limits ?? defaultUnpackLimits((await stat(archive)).size))
  try {
    const unpackInto = await unpackerOf(form)
    await unpackInto(archive, sink, signal)
  } catch (error) {
    if (signal.aborted) throw signal.reason
    throw asDamage(error)
  }
  if (sink.files.length === 0) throw new DamagedContent("the archive is empty")
  return sink.files
}
