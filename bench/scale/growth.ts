import type { MeasuredCosts } from "./costs.ts"
import { meanCall, type Scenario, statementUs } from "./figures.ts"
import {
  callsOf,
  type Deployment,
  deploymentToday,
  gathered,
  hardware,
  type LoadProfile,
  processLoad,
  today,
} from "./load-profile.ts"
import { type SimulatedTimes, simulate } from "./queueing.ts"
import { processesFor, type ResourceId, type Saturation, saturations } from "./resources.ts"

/** What to change when a part is full. */
export interface Remedy {
  /** For the picture. */
  readonly short: string
  readonly name: string
  /** What there is: a setting, more machines, or something that is not written yet. */
  readonly kind: "setting" | "machines" | "not written yet"
  readonly change: (deployment: Deployment, costs: MeasuredCosts) => Partial<Deployment>
}

const shard: Remedy = {
  short: "twice the databases",
  name: "shards of accounts: twice the deployments, each with a database and its part of the accounts",
  kind: "machines",
  change: ({ shards }) => ({ shards: shards * 2 }),
}
const moreProcesses: Remedy = {
  short: "processes as needed",
  name: "processes as the load needs them, each at most 60 % full",
  kind: "machines",
  change: () => ({ processes: undefined }),
}

/** Most connections that a process held in the ladder, rounded up. */
export const heldByProcess = ({ ladder }: MeasuredCosts): number =>
  Math.ceil(
    Math.max(
      ...ladder.map(({ databaseConnections, processes }) => databaseConnections / processes),
    ),
  )

/** Each part's remedies, in the order in which they are tried; the last one as often as needed. */
export const remedies: Readonly<Record<ResourceId, readonly Remedy[]>> = {
  "rakit-cpu": [moreProcesses],
  "postgres-cpu": [
    {
      short: "read replica",
      name: "a read replica for searches",
      kind: "not written yet",
      change: () => ({ hasReplica: true }),
    },
    {
      short: "external queue",
      name: "an external queue for deliveries",
      kind: "not written yet",
      change: () => ({ hasExternalQueue: true }),
    },
    shard,
  ],
  connections: [
    {
      short: "max_connections 500",
      name: "max_connections 500, and pools no larger than what a process held here",
      kind: "setting",
      change: ({ pool }, costs) => ({
        pool: Math.min(pool, heldByProcess(costs)),
        maxConnections: 500,
      }),
    },
    {
      short: "PgBouncer",
      name: "PgBouncer between processes and PostgreSQL",
      kind: "machines",
      change: () => ({ isPooled: true }),
    },
  ],
  wal: [shard],
  settlements: [moreProcesses],
  "balance-row": [
    {
      short: "balances in parts",
      name: "a balance in eight parts, of which each process takes from one",
      kind: "not written yet",
      change: ({ balanceParts }) => ({ balanceParts: balanceParts * 8 }),
    },
  ],
  vacuum: [
    {
      short: "autovacuum limit",
      name: "autovacuum_vacuum_cost_limit 2000",
      kind: "setting",
      change: () => ({ vacuumCostLimit: 2000 }),
    },
    shard,
  ],
  disk: [
    {
      short: "partitions by day",
      name: "calls and transfers partitioned by day; a week kept, older ones in an object store",
      kind: "not written yet",
      change: () => ({ daysKept: 7 }),
    },
    {
      short: "larger disks",
      name: "disks of 16 TB",
      kind: "machines",
      change: () => ({ diskTb: 16 }),
    },
    shard,
  ],
  webhooks: [moreProcesses],
  "index-cache": [
    {
      short: "larger cache of vectors",
      name: "cacheMb 2048",
      kind: "setting",
      change: () => ({ cacheMb: 2048 }),
    },
    {
      short: "pgvector, HNSW",
      name: "pgvector with index: hnsw",
      kind: "setting",
      change: () => ({ hasVectorIndex: true }),
    },
  ],
  "index-memory": [shard],
}

export interface Step {
  readonly scenario: Scenario
  /** What was changed last. */
  readonly remedy: Remedy | undefined
  /** All parts, the first to be full first. */
  readonly parts: readonly Saturation[]
}

export const scenarioOf = (
  costs: MeasuredCosts,
  deployment: Deployment = deploymentToday,
  profile: LoadProfile = today,
): Scenario => ({ costs, profile, hardware, deployment })

/**
 * Takes the first part to be full, changes what helps it, and so on, until nothing is full at
 * `target` times the load.
 */
export const growTo = (first: Scenario, target: number): readonly Step[] => {
  const steps: Step[] = [{ scenario: first, remedy: undefined, parts: saturations(first) }]
  const tried = new Map<ResourceId, number>()
  for (;;) {
    const { scenario, parts } = steps.at(-1)!
    const full = parts[0]!
    if (full.factor > target) return steps
    const { id, name } = full.resource
    const known = remedies[id]
    const n = tried.get(id) ?? 0
    tried.set(id, n + 1)
    const remedy = known[Math.min(n, known.length - 1)]!
    if (n > 20) throw new Error(`nothing helps ${name}`)
    const { deployment } = scenario
    const next = {
      ...scenario,
      deployment: { ...deployment, ...remedy.change(deployment, scenario.costs) },
    }
    steps.push({ scenario: next, remedy, parts: saturations(next) })
  }
}

/** Time that calls spend in Rakit and PostgreSQL, of one shard; undefined where a part is full. */
export const timesAt = (scenario: Scenario, factor: number): SimulatedTimes | undefined => {
  const { costs, profile, hardware: machines, deployment } = scenario
  const isFull = ({ resource: { id }, factor: full }: Saturation) =>
    id === "rakit-cpu"
      ? factor >= full / processLoad
      : ["postgres-cpu", "settlements"].includes(id) && factor >= full
  if (saturations(scenario).some(isFull)) return undefined
  const { statement, call } = statementUs(costs)
  const { shards } = deployment
  return simulate({
    perSecond: (callsOf(profile) * factor) / shards,
    processes: Math.max(1, Math.round(processesFor(scenario, factor) / shards)),
    callMs: meanCall(scenario, "rakitCpuUs") / 1000,
    databaseCores: machines.databaseCores,
    statementMs: statement / 1000,
    itemMs: call / 1000,
    gathered,
    flushMs: costs.flushMs,
  })
}
