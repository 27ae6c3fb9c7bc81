import { mkdtemp, rm } from "node:fs/promises"
import { join } from "node:path"
import { Effect, type Scope } from "effect"
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
