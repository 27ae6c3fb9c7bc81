import "reflect-metadata/lite"
import { join, resolve as resolvePath } from "node:path"
import { Effect, Redacted, type Scope } from "effect"
import { type DependencyContainer, container as root } from "tsyringe"
import { makeCallPath } from "../../core/call.ts"
import { makeFolders } from "../../core/folders.ts"
import { makeCatalogue } from "../../core/services/catalogue.ts"
import { systemClock } from "../../core/services/clock.ts"
import type { Deployment, Role } from "../../core/services/deployment.ts"
import { makeIds } from "../../core/services/ids.ts"
import type { Log } from "../../core/services/log.ts"
import { makeStarted, type Started } from "../../core/started.ts"
import { provide, Tokens } from "../../core/tokens.ts"
import type { DeploymentConfig } from "../config/schema.ts"
import { type InFlight, makeInFlight } from "../http/connection/in-flight.ts"
import type { Readiness } from "../http/system/health.ts"
import { folderTrouble, makeDataFolder } from "../services/folders.ts"
import { type ExposedMetrics, makeMetrics } from "../services/metrics.ts"
import type { SourceLock } from "../services/model-files/context.ts"
import { type ModelFilesStore, makeModelFiles } from "../services/model-files/model-files.ts"
import { type ModelMetrics, makeModelMetrics } from "../services/model-metrics.ts"
import { makeOutbound } from "../services/outbound/outbound.ts"
import { lazySecrets } from "../services/secrets.ts"
import { makeWorkers } from "../services/workers.ts"
import { buildVersion } from "../version.ts"
import { lazy, optional } from "./lazy.ts"

/** What is known of a server only while it runs. */
export interface ServerState {
  /** Base URL for clients: from the config, or set once the server listens. */
  baseUrl: string | undefined
  /** All plugins have started. */
  hasStarted: boolean
}

export interface Kernel {
  readonly container: DependencyContainer
  readonly state: ServerState
  readonly metrics: ExposedMetrics
  readonly modelMetrics: ModelMetrics
  readonly modelFiles: ModelFilesStore
  /** Set once there is an HTTP server. */
  readonly readiness: Started<Effect.Effect<Readiness>>
  readonly inFlight: InFlight
}

/** The tokens that the kernel provides to every plugin. */
export const kernelTokens: ReadonlySet<string> = new Set(
  [
    Tokens.deployment,
    Tokens.secrets,
    Tokens.outbound,
    Tokens.log,
    Tokens.clock,
    Tokens.ids,
    Tokens.metrics,
    Tokens.workers,
    Tokens.catalogue,
    Tokens.callPath,
  ].map((token) => token.name),
)

/** A server in one of its roles, or a CLI command, which may run beside a server. */
export type Purpose = Role | "command"

const deploymentOf = (
  config: DeploymentConfig,
  purpose: Purpose,
  state: ServerState,
): Deployment => {
  const dataDir = resolvePath(config.dataDir)
  return {
    name: config.name,
    dataDir,
    modelsDir: config.modelsDir ? resolvePath(config.modelsDir) : join(dataDir, "models"),
    ...(purpose === "command" ? { mode: purpose } : { mode: "server", role: purpose }),
    get baseUrl() {
      return state.baseUrl ?? `http://localhost:${config.server.port}`
    },
    get hasStarted() {
      return state.hasStarted
    },
  }
}

/** A list that one variable of the environment can hold. */
const listOf = (text: string) => text.split(",").map((item) => item.trim())

/** Makes a container with the kernel services in it. */
export const makeKernel = (
  config: DeploymentConfig,
  purpose: Purpose,
  log: Log,
  lock: SourceLock,
): Effect.Effect<Kernel, never, Scope.Scope> =>
  Effect.gen(function* () {
    const container = root.createChildContainer()
    const state: ServerState = {
      baseUrl: config.publicUrl === "" ? undefined : config.publicUrl.replace(/\/$/, ""),
      hasStarted: false,
    }
    const deployment = deploymentOf(config, purpose, state)
    const metrics = makeMetrics()
    const ids = makeIds(systemClock.nowMs)
    const catalogue = makeCatalogue([], config.batchPriceFactor)
    provide(container, Tokens.deployment, deployment)
    provide(
      container,
      Tokens.secrets,
      lazySecrets(Redacted.value(config.secretKey), deployment.dataDir),
    )
    provide(
      container,
      Tokens.outbound,
      makeOutbound(
        listOf(config.outbound.allowHosts),
        undefined,
        listOf(config.outbound.allowPorts),
      ),
    )
    provide(container, Tokens.log, log)
    provide(container, Tokens.clock, systemClock)
    provide(container, Tokens.ids, ids)
    provide(container, Tokens.metrics, metrics)
    provide(container, Tokens.workers, yield* makeWorkers({ threads: config.server.workerThreads }))
    const modelFiles = makeModelFiles({ modelsDir: deployment.modelsDir, log, lock })
    provide(container, Tokens.catalogue, catalogue)
    const inFlight = makeInFlight()
    const callPath = makeCallPath({
      billing: lazy(container, Tokens.billing),
      idempotency: optional(container, Tokens.idempotency),
      catalogue,
      clock: systemClock,
      ids,
      log,
      timeoutMs: config.server.callTimeoutMs,
      cohort: inFlight.cohorts.join,
      version: buildVersion,
    })
    provide(container, Tokens.callPath, callPath)
    const modelMetrics = makeModelMetrics(metrics, catalogue, systemClock)
    const readiness = makeStarted<Effect.Effect<Readiness>>()
    return { container, state, metrics, modelMetrics, modelFiles, readiness, inFlight }
  })

/**
 * Makes the data folder, readable by its owner only, and the model cache. The cache may be
 * read-only: then nothing can be pulled.
 */
export const makeDataDir = ({ dataDir, modelsDir }: Deployment): Effect.Effect<void, Error> =>
  Effect.andThen(
    Effect.try({
      try: () => makeDataFolder(dataDir),
      catch: (cause) =>
        new Error(
          `The data folder ${dataDir} can't be used: ${folderTrouble(cause)}. Fix: set dataDir (RAKIT_DATA) to a folder that can be written.`,
        ),
    }),
    Effect.try({
      // that below the data folder can be made when it is needed
      try: () => modelsDir.startsWith(join(dataDir, "/")) || makeFolders(modelsDir),
      catch: (cause) =>
        new Error(
          `The model cache ${modelsDir} can't be made: ${folderTrouble(cause)}. Fix: set modelsDir (RAKIT_MODELS) to a folder that can be written.`,
        ),
    }),
  )
