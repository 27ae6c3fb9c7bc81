import { readdir, stat } from "node:fs/promises"
import { join, resolve } from "node:path"
import type { PullContext } from "../context.ts"
import { NotThere, SourceFailed } from "../failure.ts"
import { cachedDigest, sha256OfFile } from "../store/digest.ts"
import { fileDigestsDir } from "../store/store.ts"
import { isMissing } from "../system-error.ts"
import type { StoredPath } from "./artifact.ts"

/** A `file:` source: used in place, never copied. */
export interface LocalSource {
  readonly path: string
  readonly sha256: string | undefined
}

const bytesOf = async (path: string): Promise<number> => {
  const found = await stat(path).catch(() => undefined)
  return found?.isFile() ? found.size : 0
}

const folderBytes = async (folder: string): Promise<number> => {
  let bytes = 0
  // files that are links count, too
  for (const entry of await readdir(folder, { withFileTypes: true, recursive: true }))
    if (!entry.isDirectory()) bytes += await bytesOf(join(entry.parentPath, entry.name))
  return bytes
}

const statOf = async (path: string) => {
  try {
    return await stat(path)
  } catch (error) {
    if (isMissing(error)) throw new NotThere(`${path} does not exist`)
    throw new SourceFailed(
      `${path} can't be read: ${error instanceof Error ? error.message : String(error)}`,
    )
  }
}

const check = (path: string, sha256: string, pinned: string): void => {
  if (sha256 !== pinned)
    throw new SourceFailed(`${path} has sha256 ${sha256}, not the pinned ${pinned}`)
}

/** What is there, if it may be used; its digest is not checked yet. */
const findLocal = async ({ cwd }: PullContext, source: LocalSource) => {
  const path = resolve(cwd, source.path)
  const found = await statOf(path)
  if (!found.isFile() && !found.isDirectory())
    throw new SourceFailed(`${path} is neither a file nor a folder`)
  if (found.isDirectory() && source.sha256 !== undefined)
    throw new SourceFailed(`${path} is a folder: its sha256 can't be checked, leave it out`)
  return { path, found }
}

/** Checks the digest and returns the absolute path. Fails with `SourceFailed`. */
export const useLocal = async (
  context: PullContext,
  source: LocalSource,
  signal: AbortSignal,
): Promise<StoredPath> => {
  const { path, found } = await findLocal(context, source)
  if (found.isDirectory()) return { path, bytes: await folderBytes(path) }
  if (source.sha256 !== undefined)
    check(path, await cachedDigest(fileDigestsDir(context.modelsDir), path, signal), source.sha256)
  return { path, bytes: found.size }
}

/** Like `useLocal`, but without the cached digest. */
export const verifyLocal = async (
  context: PullContext,
  source: LocalSource,
  signal: AbortSignal,
): Promise<void> => {
  const { path } = await findLocal(context, source)
  if (source.sha256 !== undefined) check(path, await sha256OfFile(path, signal), source.sha256)
}
