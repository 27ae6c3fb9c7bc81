import { Effect, type Scope } from "effect"
import type { DependencyContainer } from "tsyringe"
import {
  definePlugin,
  type JobHandler,
  makeStarted,
  type PluginError,
  provide,
  resolve,
  resolveAll,
  resolveOptional,
  Tokens,
} from "../../core/index.ts"
import { makeRetrievalEndpoint } from "./api/endpoint.ts"
import { documentCheck } from "./check/document-check.ts"
import { orphanCheck } from "./check/orphan-check.ts"
import { command } from "./command.ts"
import type { IngestDeps } from "./ingest/ingest-deps.ts"
import { ingestHandlers, ingestObserver } from "./ingest/ingest-job.ts"
import { keepMeasured, keepUp } from "./ingest/upkeep.ts"
import { migrations } from "./migrations.ts"
import { makeDocumentReader } from "./reading/document-reader.ts"
import { Settings } from "./settings.ts"
import { openVectorStore } from "./vectors/open-vector-store.ts"

const openDeps = (
  container: DependencyContainer,
  settings: Settings,
): Effect.Effect<IngestDeps, PluginError, Scope.Scope> =>
  Effect.gen(function* () {
    const base = {
      database: resolve(container, Tokens.database),
      clock: resolve(container, Tokens.clock),
      log: resolve(container, Tokens.log).with({ plugin: "endpoint-retrieval" }),
      settings,
    }
    return {
      ...base,
      files: resolve(container, Tokens.files),
      queue: resolve(container, Tokens.queue),
      billing: resolve(container, Tokens.billing),
      identity: resolve(container, Tokens.identity),
      callPath: resolve(container, Tokens.callPath),
      catalogue: resolve(container, Tokens.catalogue),
      ids: resolve(container, Tokens.ids),
      metrics: resolve(container, Tokens.metrics),
      workers: resolve(container, Tokens.workers),
      reader: yield* makeDocumentReader({
        log: base.log,
        processes: settings.ingestsAtOnce + settings.longIngestsAtOnce,
        memoryMb: settings.extractionMb,
        limitMs: settings.extractionSeconds * 1000,
        limits: {
          chunkCharacters: settings.chunkCharacters,
          chunkOverlap: settings.chunkOverlap,
          maxChunks: settings.maxChunksPerFile,
          maxPages: settings.maxPages,
        },
      }),
      vectors: yield* openVectorStore(
        base,
        resolve(container, Tokens.deployment).mode,
        resolveAll(container, Tokens.executionProviders),
      ),
    }
  })

export const plugin = definePlugin<Settings>({
  name: "endpoint-retrieval",
  api: 1,
  about: "Retrieval: knowledge files are read, divided, embedded and searched.",
  settings: Settings,
  needs: [
    Tokens.database,
    Tokens.files,
    Tokens.queue,
    Tokens.billing,
    Tokens.identity,
    Tokens.callPath,
    Tokens.catalogue,
    Tokens.clock,
    Tokens.ids,
    Tokens.log,
    Tokens.metrics,
    Tokens.workers,
    Tokens.deployment,
  ],
  optional: [Tokens.ledger, Tokens.executionProviders],
  provides: [Tokens.endpoints, Tokens.jobHandlers, Tokens.consistencyChecks],
  migrations,
  commands: [command],
  create: (settings) => {
    const started = makeStarted<IngestDeps>()
    return {
      register: (container) => {
        provide(container, Tokens.endpoints, makeRetrievalEndpoint(started.get))
        for (const handler of ingestHandlers(started.get, settings))
          provide(container, Tokens.jobHandlers, handler as JobHandler<never>)
      },
      start: (container) =>
        Effect.gen(function* () {
          const deps = yield* openDeps(container, settings)
          started.set(deps)
          deps.files.observe(ingestObserver(deps))
          const checked = { ...deps, ledger: () => resolveOptional(container, Tokens.ledger) }
          for (const check of [documentCheck(checked), orphanCheck(checked)])
            provide(container, Tokens.consistencyChecks, check)
          const { mode, role } = resolve(container, Tokens.deployment)
          if (mode === "server") yield* keepMeasured(deps)
          if (mode === "server" && role !== "api") yield* keepUp(deps)
        }),
    }
  },
})
