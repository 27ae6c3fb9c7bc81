import type { EngineStats } from "../../../core/ports/model.ts"
import type { ThreadStats } from "./protocol.ts"

/**
 * The stats of an engine over the lives of its threads: totals go on where the last thread ended,
 * gauges begin anew.
 */
export const makeEngineStats = () => {
  const ended = { queries: 0, hits: 0 }
  let current: ThreadStats | undefined
  let restarts = 0
  return {
    update: (stats: ThreadStats): void => {
      current = stats
    },
    /** The thread has ended, and its memory is gone. */
    lose: (): void => {
      if (!current) return
      ended.queries += current.prefixCacheQueries
      ended.hits += current.prefixCacheHits
      const { adapterBytes } = current
      current = {
        kvCacheUsage: 0,
        prefixCacheUsage: 0,
        prefixCacheQueries: 0,
        prefixCacheHits: 0,
        ...(adapterBytes !== undefined && { adapterBytes: 0 }),
      }
    },
    restart: (): void => {
      restarts++
    },
    read: (): EngineStats => ({
      restarts,
      ...(current && {
        ...current,
        prefixCacheQueries: ended.queries + current.prefixCacheQueries,
        prefixCacheHits: ended.hits + current.prefixCacheHits,
      }),
    }),
  }
}
