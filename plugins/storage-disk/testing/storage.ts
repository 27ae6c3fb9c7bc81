import { execFileSync } from "node:child_process"
import { mkdtempSync, rmSync } from "node:fs"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, type Scope } from "effect"
import { afterAll } from "vitest"
import type { PluginError } from "../../../core/errors.ts"
import type { Storage } from "../../../core/ports/storage.ts"
import { makeDiskStorage } from "../disk-storage.ts"
import { prepareFolder } from "../prepare-folder.ts"

/** Makes an empty storage in a new folder below `above`. */
export const freshStorage = (above: string): Effect.Effect<Storage, PluginError, Scope.Scope> => {
  const folder = Effect.acquireRelease(
    Effect.promise(() => mkdtemp(join(above, "storage-disk-"))),
    (made) => Effect.promise(() => rm(made, { recursive: true, force: true })),
  )
  return Effect.map(Effect.flatMap(folder, prepareFolder), makeDiskStorage)
}

/**
 * Mounts a file system of 1 MiB for the tests of one file; undefined where mounting is not allowed.
 */
export const mountSmallDisk = (): string | undefined => {
  const folder = mkdtempSync(join(tmpdir(), "storage-disk-"))
  let isMounted = false
  try {
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=1m", "tmpfs", folder], { stdio: "ignore" })
    isMounted = true
  } catch {
    // not root, or no Linux
  }
  afterAll(() => {
    if (isMounted) execFileSync("umount", [folder])
    rmSync(folder, { recursive: true, force: true })
  })
  return isMounted ? folder : undefined
}
