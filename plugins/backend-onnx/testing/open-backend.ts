import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Cause, Effect, Exit, Option, Scope, Stream } from "effect"
import type { ApiError } from "../../../core/errors.ts"
import type { Json } from "../../../core/json.ts"
import type { ExecutionProvider } from "../../../core/ports/execution-provider.ts"
import type {
  ChatEvent,
  ChatRequest,
  LoadedModel,
  ModelContext,
  ModelPlan,
  OpenRequest,
  TaskName,
} from "../../../core/ports/model.ts"
import type { Usage } from "../../../core/usage.ts"
import { fakeClock, fakeLog, fakeWorkers } from "../../../testing/index.ts"
import { makeOnnxBackend } from "../backend.ts"
import { makeOpenVocabularies } from "../grammar/schema-checker.ts"
import type { OnnxSettings } from "../settings.ts"
import { makeEngineHealth } from "../worker/health.ts"

interface Entry {
  readonly options?: Json
  readonly contextTokens?: number
  readonly adapters?: OpenRequest["adapters"]
  readonly modalities?: readonly string[]
}

const requestOf = <T extends TaskName>(task: T, path: string, more: Entry) => ({
  id: "m",
  task,
  path,
  options: {},
  contextTokens: 1_000_000,
  ...more,
  progress: () => {},
})

/** A backend with fake services, in a temporary folder; on the CPU without a provider. */
export const openBackend = (settings: Partial<OnnxSettings> = {}, provider?: ExecutionProvider) => {
  const dataDir = mkdtempSync(join(tmpdir(), "rakit-onnx-"))
  const scope = Scope.makeUnsafe()
  const log = fakeLog()
  const clock = fakeClock()
  const health = makeEngineHealth()
  const services = { dataDir, workers: fakeWorkers(), clock, log }
  const backend = makeOnnxBackend({
    health,
    ...(provider && { provider }),
    vocabularies: makeOpenVocabularies(),
    settings: {
      threads: 1,
      slots: 4,
      queue: 64,
      kvMemoryMb: 1_024,
      prefixCacheMb: 64,
      adapterMemoryMb: 64,
      speculation: true,
      ...settings,
    },
    services: () => services,
  })
  const open = <T extends TaskName>(
    task: T,
    path: string,
    { scope: within = scope, ...more }: Entry & { readonly scope?: Scope.Scope } = {},
  ) => Effect.runPromise(backend.open(requestOf(task, path, more)).pipe(Scope.provide(within)))
  /** Returns why a model is not opened. */
  const failure = (task: TaskName, path: string, more: Entry = {}) =>
    failureOf(Effect.scoped(backend.open(requestOf(task, path, more))))
  const close = async () => {
    await Effect.runPromise(Scope.close(scope, Exit.void))
    rmSync(dataDir, { recursive: true, force: true })
  }
  return { backend, health, open, failure, close, dataDir, log, clock }
}

export interface Metered extends ModelContext {
  readonly usage: Usage[]
  readonly stages: string[]
}

export const context = (more: Partial<ModelContext> = {}): Metered => {
  const usage: Usage[] = []
  const stages: string[] = []
  const tenant = { account: "a", mode: "live" } as const
  return {
    callId: "c",
    tenant,
    priority: "realtime",
    deadlineMs: Number.MAX_SAFE_INTEGER,
    meter: (_, soFar) => void usage.push(soFar),
    time: (stage) => void stages.push(stage),
    usage,
    stages,
    ...more,
  }
}

export const chatRequest = (text: string, more: Partial<ChatRequest> = {}): ChatRequest => ({
  messages: [{ role: "user", content: [{ type: "text", text }] }],
  sampling: { temperature: 0, topP: 1, frequencyPenalty: 0, presencePenalty: 0 },
  maxTokens: 16,
  stop: [],
  ...more,
})

/** Returns the error that the effect fails with. */
export const failureOf = async <A>(effect: Effect.Effect<A, ApiError>): Promise<ApiError> => {
  const exit = await Effect.runPromiseExit(effect)
  if (Exit.isSuccess(exit)) throw new Error("it succeeded")
  return Option.getOrThrow(Cause.findErrorOption(exit.cause))
}

export const collect = <Event>(plan: ModelPlan<Event>): Promise<readonly Event[]> =>
  Effect.runPromise(Stream.runCollect(plan.run))

export const textOf = (events: readonly ChatEvent[]): string =>
  events.map((event) => (event.type === "text" ? event.text : "")).join("")

/** Plans and runs a request, and collects its answer. */
export const answer = async (
  model: LoadedModel<"chat">,
  request: ChatRequest,
  metered = context(),
) => {
  const plan = await Effect.runPromise(model.task.plan(request, metered))
  const events = await collect(plan)
  const last = events.at(-1)
  return {
    plan,
    events,
    text: textOf(events),
    finish: last?.type === "finish" ? last.reason : undefined,
    usage: metered.usage.at(-1)!,
    metered,
  }
}
