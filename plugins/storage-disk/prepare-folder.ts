import { mkdir, realpath } from "node:fs/promises"
import { Effect } from "effect"
import { PluginError } from "../../core/errors.ts"
import { makeFolders } from "../../core/folders.ts"
import { incomingFolder } from "./blob-path.ts"
import { discard, openIncoming } from "./incoming.ts"

/** Creates the folder, checks that it can be written, and returns its real path. */
export const prepareFolder = (folder: string): Effect.Effect<string, PluginError> =>
  Effect.tryPromise({
    try: async () => {
      makeFolders(folder, 0o700)
      const root = await realpath(folder)
      await mkdir(incomingFolder(root), { recursive: true, mode: 0o700 })
      await discard(await openIncoming(root))
      return root
    },
    catch: (cause) =>
      new PluginError({
        plugin: "storage-disk",
        message: `The folder for blobs, ${folder}, can't be written (${cause instanceof Error ? cause.message : String(cause)}). Give the server's user the right to write there, or name another folder in plugins.storage-disk.folder.`,
        cause,
      }),
  })
