import { Effect, Schema } from "effect"
import { definePlugin, provide, Tokens } from "rakit/core"
import { makeMemoryStorage } from "./memory-storage.ts"

/** What the operator may set under `plugins` in the config file. */
const Settings = Schema.Struct({
  maxMegabytes: Schema.Int.check(Schema.isGreaterThan(0)).pipe(
    Schema.withDecodingDefaultKey(Effect.succeed(256)),
  ),
})

export const plugin = definePlugin<typeof Settings.Type>({
  name: "storage-memory",
  api: 1,
  about: "Keeps blobs in memory, until the server ends.",
  settings: Settings,
  needs: [],
  provides: [Tokens.storage],
  create: ({ maxMegabytes }) => ({
    start: (container) =>
      Effect.sync(() =>
        provide(container, Tokens.storage, makeMemoryStorage(maxMegabytes * 2 ** 20)),
      ),
  }),
})
