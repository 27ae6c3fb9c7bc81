// The embed task of backend-onnx in a process of its own, or with `rerank` the rerank task, to which
// the first text of a call is the query. `node --import tsx bench/embed/rakit-embedder.ts TASK MODEL
// DATA_FOLDER THREADS [cpu|gpu|software]`
import { availableParallelism } from "node:os"
import { Effect, Scope, Stream } from "effect"
import type { ModelContext } from "../../core/ports/model.ts"
import { load } from "../deployment/code.ts"
import { consoleLog as log } from "../measure/console-log.ts"
import { openDevice, type Place, providerOf } from "../measure/open-device.ts"
import { type Embed, serveEmbedder } from "./protocol.ts"

const [task, path, dataDir, threads, place = "cpu"] = process.argv.slice(2) as [
  "embed" | "rerank",
  string,
  string,
  string,
  Place?,
]
const { makeOnnxBackend } = await load<typeof import("../../plugins/backend-onnx/backend.ts")>(
  "plugins/backend-onnx/backend",
)
const { makeEngineHealth } = await load<
  typeof import("../../plugins/backend-onnx/worker/health.ts")
>("plugins/backend-onnx/worker/health")
const { makeOpenVocabularies } = await load<
  typeof import("../../plugins/backend-onnx/grammar/schema-checker.ts")
>("plugins/backend-onnx/grammar/schema-checker")
const { makeWorkers } = await load<typeof import("../../runtime/services/workers.ts")>(
  "runtime/services/workers",
)
const { systemClock } = await load<typeof import("../../core/index.ts")>("core/index")

const scope = Scope.makeUnsafe()
const inScope = <A, E>(effect: Effect.Effect<A, E, Scope.Scope>): Promise<A> =>
  Effect.runPromise(effect.pipe(Scope.provide(scope)))
const workers = await inScope(makeWorkers({ threads: availableParallelism() }))
const device = await openDevice(place)
const backend = makeOnnxBackend({
  ...(device && { provider: providerOf(device) }),
  health: makeEngineHealth(),
  vocabularies: makeOpenVocabularies(),
  settings: {
    threads: Number(threads),
    slots: 16,
    queue: 1_000,
    kvMemoryMb: 1_024,
    prefixCacheMb: 64,
    adapterMemoryMb: 64,
    speculation: true,
  },
  services: () => ({ dataDir, workers, clock: systemClock, log }),
})
const context: ModelContext = {
  callId: "bench",
  tenant: { account: "bench", mode: "live" },
  priority: "realtime",
  deadlineMs: Number.MAX_SAFE_INTEGER,
  meter: () => {},
  time: () => {},
}
const entry = { id: "m", path, options: {}, adapters: [], progress: () => {} }

const embedder = async (): Promise<Embed> => {
  const model = await inScope(backend.open({ ...entry, task: "embed", contextTokens: 4_096 }))
  if (device && model.servedBy.endsWith("cpu")) throw new Error(model.servedBy)
  return (texts) => {
    const items = texts.map((text) => ({ type: "text", text }) as const)
    const plan = model.task.plan({ items, truncate: "END" }, context)
    return Effect.runPromise(
      Effect.map(
        Effect.flatMap(plan, ({ run }) => Stream.runCollect(run)),
        (events) => [...events].sort((a, b) => a.index - b.index).map(({ vector }) => vector),
      ),
    )
  }
}

const reranker = async (): Promise<Embed> => {
  const model = await inScope(backend.open({ ...entry, task: "rerank", contextTokens: 2_048 }))
  return ([query = "", ...documents]) => {
    const plan = model.task.plan({ query, documents }, context)
    return Effect.runPromise(
      Effect.map(
        Effect.flatMap(plan, ({ run }) => Stream.runCollect(run)),
        (events) => [Float32Array.from(events, ({ score }) => score)],
      ),
    )
  }
}

await serveEmbedder(await (task === "embed" ? embedder() : reranker()))
