import type { Metrics } from "../../core/services/metrics.ts"
import { type Link, LinkedList } from "./linked-list.ts"
import type { RequestWatch } from "./request-watch.ts"

type Counter = ReturnType<Metrics["counter"]>
type Counted = "inputTokens" | "outputTokens" | "images"
type Labels = Readonly<Record<string, string>>

interface OpenCount {
  readonly watch: RequestWatch
  readonly labels: Labels
  readonly used: Record<Counted, number>
}

/** Adds what is new of tokens and images, of running requests whenever the metrics are read. */
export const makeUsageCount = (counters: Readonly<Record<Counted, Counter>>) => {
  const names = Object.keys(counters) as Counted[]
  const open = new LinkedList<OpenCount>()
  const update = ({ watch, labels, used }: OpenCount): void => {
    for (const name of names) {
      counters[name].add(Math.max(0, watch.usage[name] - used[name]), labels)
      used[name] = Math.max(used[name], watch.usage[name])
    }
  }
  return {
    begin: (watch: RequestWatch, labels: Labels): Link<OpenCount> =>
      open.add({ watch, labels, used: { inputTokens: 0, outputTokens: 0, images: 0 } }),
    end: (link: Link<OpenCount>): void => {
      if (open.remove(link)) update(link.value)
    },
    updateAll: () => {
      for (const one of open.values()) update(one)
    },
  }
}
