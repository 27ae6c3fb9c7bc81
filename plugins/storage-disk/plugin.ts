import { resolve as resolvePath } from "node:path"
import { Effect } from "effect"
import { definePlugin } from "../../core/plugin.ts"
import { repeat } from "../../core/repeat.ts"
import type { Clock } from "../../core/services/clock.ts"
import type { Log } from "../../core/services/log.ts"
import { provide, resolve, Tokens } from "../../core/tokens.ts"
import { makeDiskStorage } from "./disk-storage.ts"
import { sweep } from "./incoming.ts"
import { prepareFolder } from "./prepare-folder.ts"
import { StorageDiskSettings } from "./settings.ts"

const hourMs = 3_600_000

/** An incoming blob without a write for an hour is dead. */
const sweepHourly = (root: string, clock: Clock, log: Log) =>
  repeat(
    log,
    {
      event: "storage.sweep_failed",
      message: "Unfinished blobs could not be swept",
      everyMs: hourMs,
    },
    Effect.map(
      Effect.tryPromise(() => sweep(root, clock.nowMs(), hourMs)),
      (swept) => {
        if (swept > 0) log.info("storage.unfinished_swept", "Swept unfinished blobs", { swept })
      },
    ),
  )

export const plugin = definePlugin<StorageDiskSettings>({
  name: "storage-disk",
  api: 1,
  about: "Keeps blobs as files on the local disk.",
  settings: StorageDiskSettings,
  needs: [Tokens.deployment, Tokens.clock, Tokens.log],
  provides: [Tokens.storage],
  create: (settings) => ({
    start: (container) =>
      Effect.gen(function* () {
        const { dataDir, mode } = resolve(container, Tokens.deployment)
        const root = yield* prepareFolder(resolvePath(dataDir, settings.folder ?? "blobs"))
        if (mode === "server")
          yield* sweepHourly(root, resolve(container, Tokens.clock), resolve(container, Tokens.log))
        provide(container, Tokens.storage, makeDiskStorage(root))
      }),
  }),
})
