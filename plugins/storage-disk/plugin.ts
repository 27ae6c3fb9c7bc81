import { resolve as resolvePath } from "node:path"
import { Effect } from "effect"
import { definePlugin } from "../../core/plugin.ts"
import { provide, resolve, Tokens } from "../../core/tokens.ts"
import { makeDiskStorage } from "./disk-storage.ts"
import { keepSwept } from "./keep-swept.ts"
import { prepareFolder } from "./prepare-folder.ts"
import { StorageDiskSettings } from "./settings.ts"

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
          yield* keepSwept(root, resolve(container, Tokens.clock), resolve(container, Tokens.log))
        provide(container, Tokens.storage, makeDiskStorage(root))
      }),
  }),
})
