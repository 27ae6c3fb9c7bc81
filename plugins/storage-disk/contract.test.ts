import { execFileSync } from "node:child_process"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, type Scope } from "effect"
import type { Storage } from "../../core/ports/storage.ts"
import { storageContract } from "../../core/testing/storage-contract.ts"
import { makeDiskStorage } from "./disk-storage.ts"
import { prepareFolder } from "./prepare-folder.ts"

const freshFolder = Effect.acquireRelease(
  Effect.promise(() => mkdtemp(join(tmpdir(), "storage-disk-"))),
  (folder) => Effect.promise(() => rm(folder, { recursive: true, force: true })),
)

const mount = (folder: string): boolean => {
  try {
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=1m", "tmpfs", folder], { stdio: "ignore" })
    return true
  } catch {
    return false
  }
}

const openIn = (folder: string) => Effect.map(prepareFolder(folder), makeDiskStorage)

/** A file system of 1 MiB, where the test may mount one; a real full disk is tried nowhere else. */
const smallDisk: Effect.Effect<Storage | undefined, unknown, Scope.Scope> = Effect.gen(function* () {
  const folder = yield* freshFolder
  const isMounted = yield* Effect.acquireRelease(
    Effect.sync(() => mount(folder)),
    (done) => Effect.sync(() => done && execFileSync("umount", [folder])),
  )
  return isMounted ? yield* openIn(folder) : undefined
})

storageContract(
  "on disk",
  Effect.gen(function* () {
    const storage = yield* Effect.flatMap(freshFolder, openIn)
    const nearlyFull = yield* smallDisk
    return nearlyFull === undefined ? { storage } : { storage, nearlyFull }
  }),
)
