import type { Metrics } from "../../core/services/metrics.ts"
import type { RequestWatch } from "./request-watch.ts"

type Counter = ReturnType<Metrics["counter"]>
type Counted = "inputTokens" | "outputTokens" | "images"
type Labels = Readonly<Record<string, string>>

/** Adds what is new of tokens and images, of running requests whenever the metrics are read. */
export const makeUsageCount = (counters: Readonly<Record<Counted, Counter>>) => {
  const names = Object.keys(counters) as Counted[]
  const counted = new Map<
    RequestWatch,
    { readonly labels: Labels; readonly used: Record<Counted, number> }
  >()
  const update = (watch: RequestWatch): void => {
    const known = counted.get(watch)
    if (!known) return
    const { labels, used } = known
    for (const name of names) {
      counters[name].add(Math.max(0, watch.usage[name] - used[name]), labels)
      used[name] = Math.max(used[name], watch.usage[name])
    }
  }
  return {
    begin: (watch: RequestWatch, labels: Labels) =>
      void counted.set(watch, { labels, used: { inputTokens: 0, outputTokens: 0, images: 0 } }),
    end: (watch: RequestWatch) => {
      update(watch)
      counted.delete(watch)
    },
    updateAll: () => {
      for (const watch of counted.keys()) update(watch)
    },
  }
}
