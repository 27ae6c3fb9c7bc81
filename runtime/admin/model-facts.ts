import type { Json } from "../../core/json.ts"
import type { Catalogue } from "../../core/services/catalogue.ts"
import { adapterName, adapterNames, type ModelEntry } from "../../core/services/model-entry.ts"
import type { MetricValue } from "../services/metrics.ts"

/** What the runtime measures around every model, by `model_name` and `priority`. */
export const queueMetrics = ["rakit_num_requests_running", "rakit_num_requests_waiting"] as const

/** Options may hold secrets of upstreams, so no other is shown. */
const precisionOf = ({ options }: ModelEntry): string | null => {
  const precision = (options as { readonly precision?: Json } | null)?.precision
  return typeof precision === "string" ? precision : null
}

const stateOf = (catalogue: Catalogue, { id }: ModelEntry) => {
  const state = catalogue.state(id)
  if (state.state === "ready")
    return { state: "ready", served_by: state.loaded.servedAt ?? state.loaded.servedBy }
  if (state.state === "failed") return { state: "failed", reason: state.reason }
  if (state.state === "loading") return { state: "loading", reason: state.detail }
  return state.state === "pulling"
    ? { state: "pulling", done_bytes: state.doneBytes, total_bytes: state.totalBytes ?? null }
    : { state: "waiting" }
}

/** The names of adapters that requests may choose; of images those of an open model. */
export const chosenAdapters = (catalogue: Catalogue, entry: ModelEntry): readonly string[] => {
  const state = catalogue.state(entry.id)
  if (entry.task !== "image" || state.state !== "ready") return adapterNames(entry)
  return state.loaded.adapters.map((id) => adapterName(entry.id, { id }))
}

const engineOf = (catalogue: Catalogue, { id }: ModelEntry) => {
  const state = catalogue.state(id)
  const stats = state.state === "ready" ? state.loaded.stats?.() : undefined
  if (!stats) return null
  const { prefixCacheQueries = 0, prefixCacheHits = 0 } = stats
  return {
    kv_cache_usage: stats.kvCacheUsage ?? null,
    prefix_cache_usage: stats.prefixCacheUsage ?? null,
    prefix_cache_hits: prefixCacheQueries > 0 ? prefixCacheHits / prefixCacheQueries : null,
    adapter_bytes: stats.adapterBytes ?? null,
    restarts: stats.restarts ?? null,
  }
}

/** Each model of the config with its state, its queue here and its engine. */
export const modelFacts = (
  catalogue: Catalogue,
  metrics: ReadonlyMap<string, readonly MetricValue[]>,
) => {
  const counted = (name: string, model: string, priority: string): number =>
    metrics
      .get(name)
      ?.find(({ labels }) => labels.model_name === model && labels.priority === priority)?.value ??
    0
  const [running, waiting] = queueMetrics
  return catalogue.entries.map((entry) => ({
    id: entry.id,
    task: entry.task,
    backend: entry.backend,
    ...stateOf(catalogue, entry),
    context_window: catalogue.served(entry).contextTokens,
    precision: precisionOf(entry),
    adapters: chosenAdapters(catalogue, entry),
    running: counted(running, entry.id, "realtime"),
    waiting: counted(waiting, entry.id, "realtime"),
    batch_running: counted(running, entry.id, "batch"),
    batch_waiting: counted(waiting, entry.id, "batch"),
    engine: engineOf(catalogue, entry),
  }))
}
