import { Cause, Effect, Exit, Option, Scope, Stream } from "effect"
import { type ApiError, isApiError } from "../../../core/errors.ts"
import type { ChatEvent, ChatRequest, ModelContext, TaskName } from "../../../core/ports/model.ts"
import { systemClock } from "../../../core/services/clock.ts"
import { noUsage, type Usage } from "../../../core/usage.ts"
import { makeOutbound } from "../../../runtime/services/outbound/outbound.ts"
import {
  type FakeModel,
  fakeCatalogue,
  fakeLog,
  fakeMetrics,
  fakeWorkers,
} from "../../../testing/index.ts"
import { makeRemoteBackend } from "../backend.ts"
import { makeUpstreamHealth } from "../health.ts"
import { makeUpstreamMetrics } from "../upstream-metrics.ts"

/** A backend over real connections, with the real clock. */
export const openRemote = (...models: readonly FakeModel[]) => {
  const scope = Scope.makeUnsafe()
  const log = fakeLog()
  const health = makeUpstreamHealth()
  let outbound = makeOutbound([])
  const catalogue = fakeCatalogue(...models)
  const counted = new Map<string, number>()
  const metricsOf = makeUpstreamMetrics({
    ...fakeMetrics(),
    counter: (name) => ({
      add: (n) => void counted.set(name, (counted.get(name) ?? 0) + (n ?? 1)),
    }),
  })
  const services = { clock: systemClock, log, catalogue, workers: fakeWorkers(), metricsOf }
  const backend = makeRemoteBackend({ health, services: () => ({ ...services, outbound }) })
  const open = <T extends TaskName>(task: T, options: object, contextTokens = 4_096) =>
    Effect.runPromise(
      backend
        .open({ id: "m", task, path: "", options, contextTokens, progress: () => {} })
        .pipe(Scope.provide(scope)),
    )
  return {
    backend,
    health,
    log,
    /** Has the guard let addresses of this `host:port` pass. */
    allow: (host: string) => {
      outbound = makeOutbound([host])
    },
    /** The sum of a counter, whatever its labels. */
    counted: (name: string) => counted.get(name) ?? 0,
    catalogue,
    open,
    close: () => Effect.runPromise(Scope.close(scope, Exit.void)),
  }
}

export const chatRequest = (more: Partial<ChatRequest> = {}): ChatRequest => ({
  messages: [{ role: "user", content: [{ type: "text", text: "Say hello, please." }] }],
  sampling: { temperature: 0.5, topP: 1, frequencyPenalty: 0, presencePenalty: 0 },
  maxTokens: 64,
  stop: [],
  ...more,
})

export const contextOf = (more: Partial<ModelContext> = {}) => {
  let used: Usage = noUsage
  const notes: object[] = []
  const context: ModelContext = {
    callId: "c",
    tenant: { account: "a", mode: "live" },
    priority: "realtime",
    deadlineMs: Date.now() + 60_000,
    meter: (_, soFar) => {
      used = soFar
    },
    note: (facts) => void notes.push(facts),
    time: () => {},
    ...more,
  }
  return { context, used: () => used, notes }
}

export const errorIn = (cause: Cause.Cause<unknown>): ApiError | undefined => {
  const error = Option.getOrUndefined(Cause.findErrorOption(cause))
  return isApiError(error) ? error : undefined
}

type Planned = { readonly run: Stream.Stream<ChatEvent, ApiError>; readonly bound: Usage }

/** Plans and runs a chat; what came, what ended it, and what was metered. */
export const chat = async (
  loaded: {
    readonly task: {
      plan(request: ChatRequest, context: ModelContext): Effect.Effect<Planned, ApiError>
    }
  },
  request: ChatRequest = chatRequest(),
  more: Partial<ModelContext> = {},
) => {
  const call = contextOf(more)
  const events: ChatEvent[] = []
  const exit = await Effect.runPromiseExit(
    Effect.flatMap(loaded.task.plan(request, call.context), ({ run }) =>
      Stream.runForEach(run, (event) => Effect.sync(() => void events.push(event))),
    ),
  )
  const text = events.map((event) => (event.type === "text" ? event.text : "")).join("")
  const last = events.at(-1)
  return {
    events,
    text,
    finish: last?.type === "finish" ? last.reason : undefined,
    error: Exit.isFailure(exit) ? errorIn(exit.cause) : undefined,
    used: call.used(),
    notes: call.notes,
  }
}
