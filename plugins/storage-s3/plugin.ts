import { Effect } from "effect"
import { definePlugin } from "../../core/plugin.ts"
import { repeat } from "../../core/repeat.ts"
import type { Clock } from "../../core/services/clock.ts"
import type { Log } from "../../core/services/log.ts"
import { provide, resolve, Tokens } from "../../core/tokens.ts"
import { checkStore, makeCheck } from "./probe.ts"
import { makeS3Storage } from "./s3-storage.ts"
import { StorageS3Settings } from "./settings.ts"
import { openStore, type Store } from "./store.ts"
import { sweepUploads, unfinishedMs } from "./unfinished.ts"

const hourMs = 3_600_000

const sweepHourly = (store: Store, clock: Clock, log: Log) =>
  repeat(
    log,
    {
      event: "storage.upload_sweep_failed",
      message: "Unfinished uploads could not be swept",
      everyMs: hourMs,
    },
    Effect.map(
      Effect.tryPromise(() => sweepUploads(store, clock.nowMs() - unfinishedMs)),
      (swept) => {
        if (swept > 0) log.info("storage.uploads_swept", "Swept unfinished uploads", { swept })
      },
    ),
  )

export const plugin = definePlugin<StorageS3Settings>({
  name: "storage-s3",
  api: 1,
  about: "Keeps blobs in a bucket of an S3-compatible store.",
  settings: StorageS3Settings,
  needs: [Tokens.deployment, Tokens.clock, Tokens.log],
  provides: [Tokens.storage, Tokens.healthChecks],
  create: (settings) => {
    const store = openStore(settings)
    return {
      start: (container) =>
        Effect.gen(function* () {
          const log = resolve(container, Tokens.log).with({ plugin: "storage-s3" })
          yield* Effect.addFinalizer(() => Effect.sync(() => store.client.destroy()))
          yield* checkStore(store, log)
          provide(container, Tokens.healthChecks, makeCheck(store, log))
          if (resolve(container, Tokens.deployment).mode === "server")
            yield* sweepHourly(store, resolve(container, Tokens.clock), log)
          provide(container, Tokens.storage, makeS3Storage(store))
        }),
    }
  },
})
