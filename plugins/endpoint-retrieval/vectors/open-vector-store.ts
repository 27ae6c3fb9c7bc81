import { Effect, type Scope } from "effect"
import { type Deployment, PluginError, type PortError } from "../../../core/index.ts"
import type { RetrievalDeps } from "../deps.ts"
import { openHalfvecTable } from "./pgvector/halfvec-table.ts"
import { makeExactStore, makeHnswStore } from "./pgvector/pgvector-store.ts"
import { openScanStore } from "./scan-store.ts"
import type { VectorStore } from "./vector-store.ts"

const plugin = "endpoint-retrieval"

const open = (
  deps: RetrievalDeps,
  mode: Deployment["mode"],
): Effect.Effect<VectorStore, PluginError | PortError, Scope.Scope> =>
  Effect.gen(function* () {
    const { database, log, settings } = deps
    const why = yield* openHalfvecTable(database, log, mode)
    if (why !== undefined && settings.index === "hnsw" && mode === "server")
      return yield* new PluginError({
        plugin,
        message: `'index: hnsw' needs pgvector in the database, but ${why}; 'index: exact' does without`,
      })
    if (why !== undefined) return yield* openScanStore(deps)
    if (settings.index === "exact") return makeExactStore(deps)
    return makeHnswStore(deps, { makesIndices: mode === "server" })
  })

/**
 * Vectors are kept by pgvector where the database has it, and searched by an own scan elsewhere. A
 * command opens what the servers use, and changes nothing.
 */
export const openVectorStore = (
  deps: RetrievalDeps,
  mode: Deployment["mode"],
): Effect.Effect<VectorStore, PluginError, Scope.Scope> =>
  open(deps, mode).pipe(
    Effect.catchTag("PortError", (cause) =>
      Effect.fail(new PluginError({ plugin, message: cause.message, cause })),
    ),
    Effect.tap(({ name }) =>
      Effect.sync(() =>
        deps.log.debug("retrieval.vectors_opened", "vectors are kept and searched", { by: name }),
      ),
    ),
  )
