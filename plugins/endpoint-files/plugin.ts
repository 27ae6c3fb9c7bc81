import { Effect } from "effect"
import { definePlugin, makeStarted, provide, resolve, Tokens } from "../../core/index.ts"
import { blobCheck } from "./check/blob-check.ts"
import { fileCheck } from "./check/file-check.ts"
import { quotaCheck } from "./check/quota-check.ts"
import { uploadCheck } from "./check/upload-check.ts"
import type { FilesDeps } from "./deps.ts"
import { fileEndpoints } from "./files/file-endpoints.ts"
import { makeFiles } from "./files/files-service.ts"
import { migrations } from "./migrations.ts"
import { limitsOf, Settings } from "./settings.ts"
import { keepSwept } from "./sweep/sweeper.ts"
import { uploadEndpoints } from "./uploads/upload-endpoints.ts"

export const plugin = definePlugin<Settings>({
  name: "endpoint-files",
  api: 1,
  about: "Files and resumable uploads of customers: /v1/files and /v1/uploads.",
  settings: Settings,
  needs: [Tokens.database, Tokens.storage, Tokens.clock, Tokens.ids, Tokens.log, Tokens.deployment],
  provides: [Tokens.endpoints, Tokens.files, Tokens.consistencyChecks],
  migrations,
  create: (settings) => {
    const started = makeStarted<FilesDeps>()
    return {
      register: (container) => {
        for (const endpoint of [...fileEndpoints(started.get), ...uploadEndpoints(started.get)])
          provide(container, Tokens.endpoints, endpoint)
      },
      start: (container) =>
        Effect.gen(function* () {
          const deps: FilesDeps = {
            database: resolve(container, Tokens.database),
            storage: resolve(container, Tokens.storage),
            clock: resolve(container, Tokens.clock),
            ids: resolve(container, Tokens.ids),
            log: resolve(container, Tokens.log).with({ plugin: "endpoint-files" }),
            limits: limitsOf(settings),
            observers: [],
          }
          started.set(deps)
          provide(container, Tokens.files, makeFiles(deps))
          for (const check of [fileCheck, blobCheck, quotaCheck, uploadCheck])
            provide(container, Tokens.consistencyChecks, check(deps))
          if (resolve(container, Tokens.deployment).mode === "server") yield* keepSwept(deps)
        }),
    }
  },
})
