import { join } from "node:path"
import { Effect, type Scope } from "effect"
import { type ApiError, apiError } from "../../core/errors.ts"
import type { ExecutionProvider } from "../../core/ports/execution-provider.ts"
import type { OpenRequest } from "../../core/ports/model.ts"
import type { Clock } from "../../core/services/clock.ts"
import type { Log } from "../../core/services/log.ts"
import type { Workers } from "../../core/services/workers.ts"
import type { OpenVocabularies } from "./grammar/schema-checker.ts"
import { kernelsName } from "./onnx/kernels.ts"
import { settledPrecision } from "./sessions/open-decoder.ts"
import type { OnnxSettings } from "./settings.ts"
import { realModelPath } from "./weights/gguf-parts.ts"
import { insteadOf, onDevice } from "./worker/device-placement.ts"
import type { EngineHealth } from "./worker/health.ts"
import { type Engine, onCpu, type Placement, startEngine } from "./worker/host.ts"
import type { EngineSpec } from "./worker/protocol.ts"
import { makeRefCounted } from "./worker/ref-counted.ts"

/** What the backend depends on; `services` is called when the first model is opened. */
export interface OnnxDeps {
  readonly settings: OnnxSettings
  readonly health: EngineHealth
  readonly vocabularies: OpenVocabularies
  /** Where engines run; absent: on the CPU. */
  readonly provider?: ExecutionProvider
  services(): {
    readonly dataDir: string
    readonly workers: Workers
    readonly clock: Clock
    readonly log: Log
  }
}

export interface OpenedEngine<Job, Event, Info> {
  readonly engine: Engine<Job, Event, Info>
  /** Path of the model with symbolic links resolved. */
  readonly path: string
}

/** One of `of` engines that serve the same model and share its threads. */
interface Instance {
  readonly index: number
  readonly of: number
}

/** What an entry says of its engine. */
type EngineModel = Pick<
  EngineSpec,
  "kind" | "precision" | "promptPrecision" | "encoder" | "image"
> &
  Partial<Pick<EngineSpec, "slots">>

const megabyte = 2 ** 20

const specOf = (
  { settings, services }: OnnxDeps,
  { index, of }: Instance,
  model: EngineModel & Pick<EngineSpec, "path" | "adapters">,
): EngineSpec => ({
  graphs: join(services().dataDir, "graphs"),
  // the first engines get one more where the threads don't divide evenly
  threads: Math.floor((settings.threads + of - 1 - index) / of),
  slots: settings.slots,
  ...model,
  kvBytes: settings.kvMemoryMb * megabyte,
  prefixCacheBytes: settings.prefixCacheMb * megabyte,
  adapterBytes: settings.adapterMemoryMb * megabyte,
  speculation: settings.speculation,
})

const settled = (path: string, precision: EngineSpec["precision"]): EngineSpec["precision"] => {
  try {
    return settledPrecision(path, precision)
  } catch {
    // the thread finds the same and reports it
    return precision
  }
}

const resolved = (path: string): Effect.Effect<string, ApiError> =>
  Effect.try({
    try: () => realModelPath(path),
    catch: (cause) =>
      apiError("backend_error", `${path}: can't be read (${(cause as Error).message})`),
  })

/** Where an engine is placed; a device that is not there is said in the log. */
const placementFor = ({ provider, services }: OnnxDeps, path: string): Effect.Effect<Placement> => {
  if (!provider) return Effect.succeed(onCpu)
  const { log } = services()
  return Effect.match(provider.device, {
    onSuccess: (device) => onDevice(provider.name, device, log),
    onFailure: (reason) => {
      log.warn("engine.no_device", "a model runs on the CPU, as there is no device for it", {
        model: path,
        backend: provider.name,
        reason,
      })
      return insteadOf(provider.name)
    },
  })
}

/** Says in the log, once for each deployment, whose kernels multiply weights in blocks. */
const makeKernelsLog = ({ services }: OnnxDeps) => {
  let isSaid = false
  return Effect.sync(() => {
    if (isSaid) return
    isSaid = true
    services().log.info("engine.kernels", "weights in blocks are multiplied by these kernels", {
      kernels: kernelsName() ?? "onnxruntime",
    })
  })
}

/**
 * Opens engines: one for each model file, precision, list of adapters and instance, shared by all
 * entries that name it.
 */
export const makeEngines = (deps: OnnxDeps) => {
  const shared = makeRefCounted<Engine<never, unknown, unknown>, ApiError>()
  const sayKernels = makeKernelsLog(deps)
  return <Job, Event, Info>(
    model: EngineModel,
    request: OpenRequest,
    instance: Instance = { index: 0, of: 1 },
  ): Effect.Effect<OpenedEngine<Job, Event, Info>, ApiError, Scope.Scope> =>
    Effect.gen(function* () {
      const path = yield* resolved(request.path)
      const adapters = yield* Effect.forEach(request.adapters ?? [], (adapter) =>
        Effect.map(resolved(adapter.path), (found) => ({ id: adapter.id, path: found })),
      )
      // an image model settles the precision of each part by itself
      const precision = model.kind === "image" ? model.precision : settled(path, model.precision)
      const own = { ...model, path, precision, adapters }
      const start = (placement: Placement) =>
        startEngine<Job, Event, Info>({
          spec: specOf(deps, instance, own),
          queue: deps.settings.queue,
          log: deps.services().log,
          placement,
          progress: (detail) => request.progress(detail),
        })
      const open = placementFor(deps, path).pipe(
        // a model that does not open on a device is opened once more, on the CPU
        Effect.flatMap((placement) =>
          placement === onCpu
            ? Effect.tap(start(placement), sayKernels)
            : Effect.catch(start(placement), () => start(placement)),
        ),
        Effect.tap((engine) => deps.health.watch(path, engine)),
      )
      const engine = yield* shared.get(
        JSON.stringify([own, instance]),
        open as unknown as Effect.Effect<Engine<never, unknown, unknown>, ApiError, Scope.Scope>,
      )
      return { path, engine: engine as unknown as Engine<Job, Event, Info> }
    })
}

export type EngineOf = ReturnType<typeof makeEngines>
