import { Effect, type Scope } from "effect"
import { type Deployment, type Log, PluginError, type PortError } from "../../../core/index.ts"
import type { Device, ExecutionProvider } from "../../../core/ports/execution-provider.ts"
import type { RetrievalDeps } from "../deps.ts"
import { openHalfvecTable } from "./pgvector/halfvec-table.ts"
import { makeExactStore, makeHnswStore } from "./pgvector/pgvector-store.ts"
import { openScanStore } from "./scan-store.ts"
import type { VectorStore } from "./vector-store.ts"

const plugin = "endpoint-retrieval"

/** Returns the provider that the settings name, if they name one. */
const providerIn = (
  { settings: { device } }: RetrievalDeps,
  providers: readonly ExecutionProvider[],
): Effect.Effect<ExecutionProvider | undefined, PluginError> => {
  const provider = providers.find(({ name }) => name === device)
  if (device === undefined || provider) return Effect.succeed(provider)
  return new PluginError({
    plugin,
    message: `'device: ${device}' names no provider of devices; a plugin such as backend-webgpu brings one`,
  })
}

/** Looks for the provider's device; where there is none, the CPU searches. */
const deviceOf = (
  { log }: RetrievalDeps,
  provider: ExecutionProvider | undefined,
): Effect.Effect<Device | undefined> =>
  Effect.catch(provider?.device ?? Effect.succeed(undefined), (reason) =>
    Effect.sync(() => {
      onCpu(log, reason)
      return undefined
    }),
  )

const onCpu = (log: Log, reason: string): void =>
  log.warn("retrieval.device_unused", "the CPU searches vectors, not the device of the settings", {
    reason,
  })

const open = (
  deps: RetrievalDeps,
  mode: Deployment["mode"],
  providers: readonly ExecutionProvider[],
): Effect.Effect<VectorStore, PluginError | PortError, Scope.Scope> =>
  Effect.gen(function* () {
    const { database, log, settings } = deps
    // commands search little, and leave the device to the server
    const provider = mode === "server" ? yield* providerIn(deps, providers) : undefined
    const why = yield* openHalfvecTable(database, log, mode)
    if (why !== undefined && settings.index === "hnsw" && mode === "server")
      return yield* new PluginError({
        plugin,
        message: `'index: hnsw' needs pgvector in the database, but ${why}; 'index: exact' does without`,
      })
    if (why !== undefined)
      return yield* openScanStore({ ...deps, device: yield* deviceOf(deps, provider) })
    if (provider) onCpu(log, "pgvector keeps and searches them")
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
  providers: readonly ExecutionProvider[] = [],
): Effect.Effect<VectorStore, PluginError, Scope.Scope> =>
  open(deps, mode, providers).pipe(
    Effect.catchTag("PortError", (cause) =>
      Effect.fail(new PluginError({ plugin, message: cause.message, cause })),
    ),
    Effect.tap(({ name }) =>
      Effect.sync(() =>
        deps.log.debug("retrieval.vectors_opened", "vectors are kept and searched", { by: name }),
      ),
    ),
  )
