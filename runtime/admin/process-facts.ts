import { statfs } from "node:fs/promises"
import { availableParallelism, hostname, totalmem } from "node:os"
import { Effect } from "effect"
import type { Clock } from "../../core/services/clock.ts"
import type { Deployment } from "../../core/services/deployment.ts"

/** Shorter spans between two readings say little. */
const leastSpanMs = 1_000

/** Load between this reading and the one before; the first is since the process began. */
const makeLoad = () => {
  let last = { cpu: { user: 0, system: 0 }, loop: { idle: 0, active: 0, utilization: 0 }, atMs: 0 }
  let load = { cpu_cores: 0, event_loop: 0 }
  return () => {
    const now = {
      cpu: process.cpuUsage(),
      loop: performance.eventLoopUtilization(),
      atMs: process.uptime() * 1000,
    }
    const spanMs = now.atMs - last.atMs
    if (spanMs < leastSpanMs) return load
    const cpuMs = (now.cpu.user + now.cpu.system - last.cpu.user - last.cpu.system) / 1000
    load = {
      cpu_cores: cpuMs / spanMs,
      event_loop: performance.eventLoopUtilization(now.loop, last.loop).utilization,
    }
    last = now
    return load
  }
}

const memory = () => {
  const { rss, heapTotal, heapUsed, external } = process.memoryUsage()
  // 0, or more than the machine has: no limit is set
  const limit = process.constrainedMemory() || Number.POSITIVE_INFINITY
  return {
    rss_bytes: rss,
    heap_used_bytes: heapUsed,
    heap_total_bytes: heapTotal,
    external_bytes: external,
    limit_bytes: Math.min(limit, totalmem()),
  }
}

/** Space of the data folder; null where its file system does not say. */
const diskOf = (folder: string) =>
  Effect.promise(() =>
    statfs(folder).then(
      ({ bavail, blocks, bsize }) => ({ free_bytes: bavail * bsize, total_bytes: blocks * bsize }),
      () => null,
    ),
  )

/** Reads what this process uses of its machine. */
export const makeProcessFacts = (clock: Clock, { dataDir }: Pick<Deployment, "dataDir">) => {
  const load = makeLoad()
  return Effect.suspend(() =>
    Effect.map(diskOf(dataDir), (disk) => ({
      hostname: hostname(),
      pid: process.pid,
      node: process.version,
      started_at: Math.floor(clock.nowMs() / 1000 - process.uptime()),
      uptime_seconds: Math.floor(process.uptime()),
      memory: memory(),
      cores: availableParallelism(),
      ...load(),
      disk,
    })),
  )
}
