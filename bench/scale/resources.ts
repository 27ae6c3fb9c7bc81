import type { MeasuredCosts } from "./costs.ts"
import { perSecond, type Scenario, searchUs, statementUs } from "./figures.ts"
import { callsOf, gathered, processLoad, webhooksAtOnce } from "./load-profile.ts"

export type ResourceId =
  | "rakit-cpu"
  | "postgres-cpu"
  | "connections"
  | "wal"
  | "settlements"
  | "balance-row"
  | "vacuum"
  | "disk"
  | "webhooks"
  | "index-cache"
  | "index-memory"

/** A part that can become full. */
export interface Resource {
  readonly id: ResourceId
  readonly name: string
  readonly unit: string
  /** At so many times the load; grows with it. */
  use(factor: number): number
  capacity(factor: number): number
  /** How the two come about, in figures of today's load. */
  readonly arithmetic: string
}

export const processesFor = (scenario: Scenario, factor: number): number =>
  scenario.deployment.processes ??
  Math.max(3, Math.ceil((perSecond(scenario, "rakitCpuUs") * factor) / 1e6 / processLoad))

/** What a call adds to a statement when all calls are of one account, in µs of PostgreSQL's CPU. */
const oneAccountUs = (costs: MeasuredCosts): number => {
  const { statement, call } = statementUs(costs)
  const alone = costs.ladder.find(({ accounts }) => accounts === "one")
  if (!alone) return call
  const shared = statement * (1 / alone.callsPerAdmission + 1 / alone.callsPerSettlement)
  return Math.max(1, alone.postgresCpuUs - shared)
}

/** For how long a call locks its account's row, in µs, when groups are as large as they get. */
export const lockedUs = (costs: MeasuredCosts): number =>
  (2 * statementUs(costs).statement + costs.flushMs * 1000) / gathered + oneAccountUs(costs)

/** A row of the scan: halves, 8 bits a number, and four numbers beside them. */
const scanBytes = (dimensions: number): number => 3 * dimensions + 16
const dimensions = 384

const text = (value: number): string => {
  if (value >= 1000) return Math.round(value).toLocaleString("en-US")
  return String(Number(value.toPrecision(3)))
}

const connectionsReserved = 3
const secondsOfDay = 86_400
/** autovacuum: 20 points for a page that it dirties, a pause of 2 ms whenever the limit is reached. */
const vacuumMbPerSecond = (costLimit: number): number => ((costLimit / 20) * 8192) / 0.002 / 1e6

const cpuOfDatabase = (scenario: Scenario): readonly [number, string] => {
  const { costs, profile, deployment } = scenario
  const all = perSecond(scenario, "postgresCpuUs")
  const searches = profile.rates.search * searchUs(costs, "postgresCpuUs", profile.chunksOfAccount)
  const queued = profile.rates.webhook * costs.kinds.webhook.postgresCpuUs
  const left =
    all - (deployment.hasReplica ? searches : 0) - (deployment.hasExternalQueue ? queued : 0)
  return [
    left / 1e6,
    `${text(left / 1000)} ms a second of ${text(callsOf(profile))} calls and the rest (searches ${text(searches / 1000)} of it, webhooks ${text(queued / 1000)})`,
  ]
}

const computing = (scenario: Scenario): readonly Resource[] => {
  const { costs, hardware, deployment } = scenario
  const rakit = perSecond(scenario, "rakitCpuUs") / 1e6
  const [database, databaseText] = cpuOfDatabase(scenario)
  const idle = (factor: number) => (processesFor(scenario, factor) * costs.idle.postgresCpuUs) / 1e6
  return [
    {
      id: "rakit-cpu",
      name: "CPU of the Rakit processes",
      unit: "cores",
      use: (factor) => rakit * factor,
      capacity: (factor) =>
        deployment.processes === undefined
          ? (rakit * factor) / processLoad
          : deployment.processes * processLoad,
      arithmetic: `${text(rakit * 1000)} ms a second; a process has one core and should be at most ${text(100 * processLoad)} % full`,
    },
    {
      id: "postgres-cpu",
      name: "CPU of PostgreSQL",
      unit: "cores",
      use: (factor) => database * factor + idle(factor),
      capacity: () => hardware.databaseCores * deployment.shards,
      arithmetic: `${databaseText}, and ${text(costs.idle.postgresCpuUs / 1000)} ms for each process that idles`,
    },
  ]
}

const writing = (scenario: Scenario): readonly Resource[] => {
  const { costs, profile, hardware, deployment } = scenario
  const calls = callsOf(profile)
  const wal = perSecond(scenario, "walBytes") / 1e6
  const kept = perSecond(scenario, "kept")
  const gbOfDay = (kept * profile.meanOfPeak * secondsOfDay) / 1e9
  const { statement, call } = statementUs(costs)
  const groupMs = statement / 1000 + (gathered * call) / 2000 + 1.5 * costs.flushMs
  return [
    {
      id: "wal",
      name: "write-ahead log, bytes",
      unit: "MB/s",
      use: (factor) => wal * factor,
      capacity: () => hardware.walMbPerSecond * deployment.shards,
      arithmetic: `${text((wal * 1e6) / calls)} bytes a call x ${text(calls)} calls/s`,
    },
    {
      id: "settlements",
      name: "flushes: the line of settlements",
      unit: "calls/s",
      use: (factor) => calls * factor,
      capacity: (factor) => (processesFor(scenario, factor) * gathered * 1000) / groupMs,
      arithmetic: `each process has one statement at a time, of ${gathered} calls at most: ${text(statement / 1000)} ms + ${gathered} x ${text(call / 2)} µs + 1.5 flushes of ${text(costs.flushMs)} ms = ${text(groupMs)} ms, so ${text((gathered * 1000) / groupMs)} calls/s a process`,
    },
    {
      id: "vacuum",
      name: "autovacuum",
      unit: "MB/s",
      use: (factor) => (kept * factor) / 1e6,
      capacity: () => vacuumMbPerSecond(deployment.vacuumCostLimit) * deployment.shards,
      arithmetic: `each call's rows are written twice (open, settled), so every page that grows is cleaned: ${text(kept / calls)} bytes a call; the limit of ${deployment.vacuumCostLimit} points is ${deployment.vacuumCostLimit / 20} pages in 2 ms`,
    },
    {
      id: "disk",
      name: "tables on the disk",
      unit: "GB",
      use: (factor) => gbOfDay * deployment.daysKept * factor,
      capacity: () => deployment.diskTb * 1000 * 0.8 * deployment.shards,
      arithmetic: `${text(kept / calls)} bytes a call x ${text(calls * profile.meanOfPeak)} calls/s in the mean of a month = ${text(gbOfDay)} GB a day, ${deployment.daysKept} days, as nothing of the ledger is ever deleted; four fifths of ${deployment.diskTb} TB`,
    },
  ]
}

const waiting = (scenario: Scenario): readonly Resource[] => {
  const { costs, profile, hardware, deployment } = scenario
  const { statement } = statementUs(costs)
  const outstanding = (profile.rates.webhook * profile.receiverMs) / 1000
  return [
    {
      id: "connections",
      name: "connections of PostgreSQL",
      unit: "connections",
      use: (factor) =>
        deployment.isPooled
          ? 4 * hardware.databaseCores * deployment.shards
          : processesFor(scenario, factor) * deployment.pool,
      capacity: () => (deployment.maxConnections - connectionsReserved) * deployment.shards,
      arithmetic: deployment.isPooled
        ? "a pooler holds four for each core of PostgreSQL, whatever the processes"
        : `${deployment.pool} for each process at most; max_connections ${deployment.maxConnections} less ${connectionsReserved} for superusers`,
    },
    {
      id: "balance-row",
      name: "one account's balance",
      unit: "calls/s",
      use: (factor) => callsOf(profile) * profile.busiestAccount * factor,
      capacity: () => (deployment.balanceParts * 1e6) / lockedUs(costs),
      arithmetic: `its row is locked for two statements of ${gathered} calls and a flush: (2 x ${text(statement)} + ${text(costs.flushMs * 1000)} µs) / ${gathered} + ${text(oneAccountUs(costs))} µs = ${text(lockedUs(costs))} µs a call; ${text(profile.busiestAccount * 100)} % of all calls are its`,
    },
    {
      id: "webhooks",
      name: "webhooks that wait for an answer",
      unit: "deliveries",
      use: (factor) => outstanding * factor,
      capacity: (factor) => processesFor(scenario, factor) * webhooksAtOnce,
      arithmetic: `${text(profile.rates.webhook)} a second x ${text(profile.receiverMs)} ms (Little); ${webhooksAtOnce} at once a process`,
    },
  ]
}

const indexing = (scenario: Scenario): readonly Resource[] => {
  const { costs, profile, hardware, deployment } = scenario
  const vectorBytes = costs.kinds.chunk.bytes.retrieval_vector ?? 0
  const active = (profile.chunks * profile.activeChunks * scanBytes(dimensions)) / 1e6
  return [
    {
      id: "index-cache",
      name: "vectors in the memory of a process",
      unit: "MB",
      use: (factor) => (deployment.hasVectorIndex ? 0 : active * factor),
      capacity: () => deployment.cacheMb,
      arithmetic: deployment.hasVectorIndex
        ? "pgvector searches"
        : `${text(profile.chunks * profile.activeChunks)} chunks of accounts that search x ${scanBytes(dimensions)} bytes, in each process; beyond, a search reads its vectors again`,
    },
    {
      id: "index-memory",
      name: "vectors in the memory of PostgreSQL",
      unit: "GB",
      use: (factor) => (profile.chunks * vectorBytes * factor) / 1e9,
      capacity: () => hardware.databaseMemoryGb * 0.75 * deployment.shards,
      arithmetic: `${text(profile.chunks)} chunks x ${text(vectorBytes)} bytes, three quarters of the memory`,
    },
  ]
}

/** All parts, as the scenario has them. */
export const resourcesOf = (scenario: Scenario): readonly Resource[] => [
  ...computing(scenario),
  ...waiting(scenario),
  ...writing(scenario),
  ...indexing(scenario),
]

const most = 1e6

/** The least factor at which a part is full, from 1 on; infinite beyond a million. */
export const saturationOf = ({ use, capacity }: Resource): number => {
  const isFull = (factor: number) => use(factor) >= capacity(factor)
  if (isFull(1)) return 1
  if (!isFull(most)) return Number.POSITIVE_INFINITY
  let [low, high] = [1, most]
  while (high / low > 1.0001) {
    const middle = Math.sqrt(low * high)
    if (isFull(middle)) high = middle
    else low = middle
  }
  return high
}

export interface Saturation {
  readonly resource: Resource
  readonly factor: number
}

/** The first to be full comes first. */
export const saturations = (scenario: Scenario): readonly Saturation[] =>
  resourcesOf(scenario)
    .map((resource) => ({ resource, factor: saturationOf(resource) }))
    .sort((a, b) => a.factor - b.factor)
