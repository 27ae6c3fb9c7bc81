import type { EngineStats, LoadedModel, ModelContext, TaskName } from "../../core/ports/model.ts"
import type { Catalogue, ModelState } from "../../core/services/catalogue.ts"
import type { Clock } from "../../core/services/clock.ts"
import type { Metrics } from "../../core/services/metrics.ts"
import type { ModelEntry } from "../../core/services/model-entry.ts"
import {
  type EndedRequest,
  type RequestListener,
  RequestWatch,
  watchTask,
} from "./request-watch.ts"
import { makeUsageCount } from "./usage-count.ts"

/**
 * The metrics of the models. Names after the prefix, `model_name` and the buckets are vLLM's where
 * it has them; `priority` is ours, so that batch lines, which may wait for hours, stay apart.
 */
export interface ModelMetrics {
  /** The same model, with each of its requests counted and timed. */
  watch<T extends TaskName>(entry: ModelEntry, loaded: LoadedModel<T>): LoadedModel<T>
}

const firstTokenBuckets = [
  0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80,
  160, 640, 2560,
]
const perTokenBuckets = [
  0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80,
]
// vLLM's begin at 0.3 s, which an embedding never takes
const latencyBuckets = [
  0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60,
  120, 240, 480, 960, 1920, 7680,
]
const tokenBuckets = [1, 4, 16, 64, 256, 1024, 4096, 16_384, 65_536, 262_144, 1_048_576]

const labels = ["model_name", "priority"] as const
type Labels = Readonly<Record<(typeof labels)[number], string>>
const priorities: readonly ModelContext["priority"][] = ["realtime", "batch"]
const chatReasons = ["stop", "length", "tool_calls", "content_filter"]
const states: readonly ModelState["state"][] = ["waiting", "pulling", "loading", "ready", "failed"]

const makeRequestCounts = (metrics: Metrics) => ({
  running: metrics.gauge("rakit_num_requests_running", "Requests that the model works on.", labels),
  waiting: metrics.gauge(
    "rakit_num_requests_waiting",
    "Requests that wait for a slot of the model.",
    labels,
  ),
  prompt: metrics.counter(
    "rakit_prompt_tokens_total",
    "Tokens of prompts and texts, those from the prefix cache included.",
    labels,
  ),
  generation: metrics.counter(
    "rakit_generation_tokens_total",
    "Tokens of answers, reasoning included.",
    labels,
  ),
  images: metrics.counter("rakit_images_total", "Images that were embedded or made.", labels),
  ended: metrics.counter(
    "rakit_request_success_total",
    "Answers of the model that have ended, by reason; abort: the client left, error: it failed.",
    [...labels, "finished_reason"],
  ),
})

const makeRequestHistograms = (metrics: Metrics) => {
  const histogram = (name: string, help: string, buckets: readonly number[]) =>
    metrics.histogram(name, help, buckets, labels)
  return {
    firstToken: histogram(
      "rakit_time_to_first_token_seconds",
      "From the model's getting the request to the first token of its answer.",
      firstTokenBuckets,
    ),
    perToken: histogram(
      "rakit_request_time_per_output_token_seconds",
      "Mean time of an answer's tokens after the first.",
      perTokenBuckets,
    ),
    whole: histogram(
      "rakit_e2e_request_latency_seconds",
      "From the model's getting the request to the end of its answer.",
      latencyBuckets,
    ),
    queue: histogram(
      "rakit_request_queue_time_seconds",
      "How long a request waited for a slot.",
      latencyBuckets,
    ),
    prefill: histogram(
      "rakit_request_prefill_time_seconds",
      "From leaving the queue to the first token.",
      latencyBuckets,
    ),
    decode: histogram(
      "rakit_request_decode_time_seconds",
      "From the first token to the last.",
      latencyBuckets,
    ),
    inference: histogram(
      "rakit_request_inference_time_seconds",
      "From leaving the queue to the end.",
      latencyBuckets,
    ),
    promptTokens: histogram(
      "rakit_request_prompt_tokens",
      "Tokens of the prompt of a request.",
      tokenBuckets,
    ),
    generationTokens: histogram(
      "rakit_request_generation_tokens",
      "Tokens of the answer of a request.",
      tokenBuckets,
    ),
  }
}

const makeRequestMeters = (metrics: Metrics) => ({
  ...makeRequestCounts(metrics),
  ...makeRequestHistograms(metrics),
})

type RequestMeters = ReturnType<typeof makeRequestMeters>

const observeTimes = (meters: RequestMeters, of: Labels, request: EndedRequest): void => {
  const { arrivedMs, startedMs, scheduledMs, firstTokenMs, lastTokenMs, endedMs } = request
  const { reasons, usage } = request
  const { inputTokens, outputTokens } = usage
  const seconds = (fromMs: number, toMs: number) => (toMs - fromMs) / 1000
  meters.whole.observe(seconds(arrivedMs, endedMs), of)
  if (scheduledMs === undefined) return
  meters.queue.observe(seconds(startedMs, scheduledMs), of)
  meters.inference.observe(seconds(scheduledMs, endedMs), of)
  meters.promptTokens.observe(inputTokens, of)
  // embeddings and scores have no tokens to come first
  if (firstTokenMs === undefined || outputTokens === 0) return
  meters.generationTokens.observe(outputTokens, of)
  meters.firstToken.observe(seconds(arrivedMs, firstTokenMs), of)
  meters.prefill.observe(seconds(scheduledMs, firstTokenMs), of)
  meters.decode.observe(seconds(firstTokenMs, lastTokenMs), of)
  // answers to one prompt are written side by side
  const tokensOfAnswer = outputTokens / reasons.length
  if (tokensOfAnswer > 1)
    meters.perToken.observe(seconds(firstTokenMs, lastTokenMs) / (tokensOfAnswer - 1), of)
}

/** The series of a model are there from its opening on, at zero. */
const showZeros = (meters: RequestMeters, { id, task }: ModelEntry): void => {
  for (const priority of priorities) {
    const of = { model_name: id, priority }
    const { running, waiting, prompt, generation, images } = meters
    for (const meter of [running, waiting, prompt, generation, images]) meter.add(0, of)
    for (const reason of [...(task === "chat" ? chatReasons : ["stop"]), "abort", "error"])
      meters.ended.add(0, { ...of, finished_reason: reason })
  }
}

const shared = "models that share a file share an engine, and show the same."

const makeEngineMeters = (metrics: Metrics) => ({
  gauges: {
    kvCacheUsage: metrics.gauge(
      "rakit_kv_cache_usage_perc",
      `The part of the memory for keys and values that running requests hold, 1 is all; ${shared}`,
      ["model_name"],
    ),
    prefixCacheUsage: metrics.gauge(
      "rakit_prefix_cache_usage_perc",
      `The part of the prefix cache that is filled, 1 is all; ${shared}`,
      ["model_name"],
    ),
    adapterBytes: metrics.gauge(
      "rakit_adapter_bytes",
      `Memory of the adapters of the model; ${shared}`,
      ["model_name"],
    ),
    reproducible: metrics.gauge(
      "rakit_model_reproducible",
      "1: the same request has the same answer, byte by byte; 0: this CPU or this kind of file may give another.",
      ["model_name"],
    ),
  },
  totals: {
    prefixCacheQueries: metrics.counter(
      "rakit_prefix_cache_queries_total",
      `Tokens of prompts that were looked up in the prefix cache; ${shared}`,
      ["model_name"],
    ),
    prefixCacheHits: metrics.counter(
      "rakit_prefix_cache_hits_total",
      `Tokens of prompts that the prefix cache had; ${shared}`,
      ["model_name"],
    ),
    restarts: metrics.counter(
      "rakit_engine_restarts_total",
      `How often the model's engine ended and was started again; ${shared}`,
      ["model_name"],
    ),
  },
})

type Key = keyof EngineStats

/** Gauges and totals of the engines, and the states of the models, looked up when they are read. */
const readEngines = (metrics: Metrics, catalogue: Catalogue): void => {
  const { gauges, totals } = makeEngineMeters(metrics)
  const state = metrics.gauge(
    "rakit_model_state",
    "1 for the state that the model is in: waiting, pulling, loading, ready or failed.",
    ["model_name", "state"],
  )
  const before = new Map<string, EngineStats>()
  const record = (model_name: string, stats: EngineStats): void => {
    for (const [key, meter] of Object.entries(gauges)) {
      const value = stats[key as Key]
      if (value !== undefined) meter.set(value, { model_name })
    }
    for (const [key, meter] of Object.entries(totals)) {
      const value = stats[key as Key]
      const known = before.get(model_name)?.[key as Key] ?? 0
      if (value !== undefined) meter.add(Math.max(0, value - known), { model_name })
    }
    before.set(model_name, stats)
  }
  metrics.onRead(() => {
    for (const { id } of catalogue.entries) {
      const now = catalogue.state(id)
      for (const one of states) state.set(one === now.state ? 1 : 0, { model_name: id, state: one })
      if (now.state === "ready" && now.loaded.stats) record(id, now.loaded.stats())
    }
  })
}

export const makeModelMetrics = (
  metrics: Metrics,
  catalogue: Catalogue,
  clock: Clock,
): ModelMetrics => {
  const meters = makeRequestMeters(metrics)
  const usage = makeUsageCount({
    inputTokens: meters.prompt,
    outputTokens: meters.generation,
    images: meters.images,
  })
  metrics.onRead(usage.updateAll)
  readEngines(metrics, catalogue)
  const watchOf = (model_name: string) => {
    const labelsOf = {
      realtime: { model_name, priority: "realtime" },
      batch: { model_name, priority: "batch" },
    } as const satisfies Record<ModelContext["priority"], Labels>
    return (context: ModelContext) => watchRequest(context, labelsOf[context.priority])
  }
  const watchRequest = (context: ModelContext, of: Labels) => {
    const { model_name, priority } = of
    let count: ReturnType<typeof usage.begin> | undefined
    const listener: RequestListener = {
      moved: (from, to) => {
        if (from) meters[from].add(-1, of)
        else count = usage.begin(watch, of)
        if (to) meters[to].add(1, of)
      },
      ended: (request) => {
        if (count) usage.end(count)
        for (const finished_reason of request.reasons)
          meters.ended.add(1, { model_name, priority, finished_reason })
        observeTimes(meters, of, request)
      },
    }
    const watch = new RequestWatch(clock, listener, context)
    return watch
  }
  return {
    watch: (entry, loaded) => {
      showZeros(meters, entry)
      // a chat that ends without its finish is no success
      const whole = entry.task === "chat" ? "error" : "stop"
      const task = watchTask(loaded.task as never, whole, watchOf(entry.id))
      // what a backend computes anew when it is read stays so
      return Object.defineProperties({} as LoadedModel<typeof entry.task>, {
        ...Object.getOwnPropertyDescriptors(loaded),
        task: { value: task, enumerable: true },
      }) as unknown as typeof loaded
    },
  }
}
