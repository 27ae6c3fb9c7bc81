import { median } from "../measure/rounds.ts"
import { shortChatBody } from "../path/requests.ts"
import type { Cluster } from "./cluster.ts"
import type { Costs, Rung, Served } from "./costs.ts"
import { costsBetween, type Idle, type Reading } from "./meter.ts"

export interface Load {
  readonly path: string
  readonly bodies: readonly string[]
  readonly headers?: Readonly<Record<string, string>>
  readonly keys: readonly string[]
  readonly apart?: boolean
  readonly connections: number
  readonly ms: number
}

export interface Loaded {
  readonly before: Reading
  readonly after: Reading
  readonly count: number
  readonly perSecond: number
  readonly p50Ms: number
  readonly p99Ms: number
  readonly failures: number
  readonly clientUs: number
  readonly wallMs: number
  /** Most at a time. */
  readonly databaseConnections: number
}

/** One run of a closed loop on all servers, between two readings. */
export const load = async (cluster: Cluster, job: Load): Promise<Loaded> => {
  const { client, meter, urls, pids } = cluster
  const before = await meter.read(pids)
  let databaseConnections = 0
  const looking = setInterval(() => {
    meter.connections().then((n) => {
      databaseConnections = Math.max(databaseConnections, n)
    })
  }, 500)
  const startedMs = performance.now()
  const { headers = { "content-type": "application/json" }, ...rest } = job
  const { medianMs, cpuUs, ...result } = await client.run({
    ...rest,
    urls,
    headers,
    method: "POST",
  })
  const wallMs = performance.now() - startedMs
  clearInterval(looking)
  const after = await meter.read(pids)
  if (result.count === 0) throw new Error(`no request to ${job.path} was served`)
  return {
    ...result,
    before,
    after,
    p50Ms: medianMs,
    clientUs: cpuUs,
    wallMs,
    databaseConnections,
  }
}

const chat = [JSON.stringify(shortChatBody)]

export const chatLoad = (keys: readonly string[], connections: number, ms: number): Load => ({
  path: "/v1/chat/completions",
  bodies: chat,
  keys,
  connections,
  ms,
})

const rungOf = (run: Loaded, idle: Idle): Omit<Rung, "processes" | "connections" | "accounts"> => {
  const { before, after, count, wallMs } = run
  const costs = costsBetween(before, after, count, idle)
  const between = (group: "admissions" | "settlements", key: "statements" | "calls" | "ms") =>
    after[group][key] - before[group][key]
  const seconds = (after.atMs - before.atMs) / 1000
  const ours = after.rakitCpuUs - before.rakitCpuUs + after.postgresCpuUs - before.postgresCpuUs
  const { rows: _, bytes: __, count: ___, ...each } = costs
  return {
    ...each,
    perSecond: run.perSecond,
    p50Ms: run.p50Ms,
    p99Ms: run.p99Ms,
    failures: run.failures,
    callsPerAdmission: between("admissions", "calls") / between("admissions", "statements"),
    callsPerSettlement: count / between("settlements", "statements"),
    admitMs: between("admissions", "ms") / between("admissions", "statements"),
    settleMs: between("settlements", "ms") / between("settlements", "statements"),
    databaseConnections: run.databaseConnections,
    clientCores: run.clientUs / 1000 / wallMs,
    foreignCores: Math.max(0, (after.busyUs - before.busyUs - ours - run.clientUs) / 1e6 / seconds),
  }
}

const round = (value: number): number => Number(value.toPrecision(4))

/** The median of each figure; failures are added up. */
const middleOf = (runs: readonly ReturnType<typeof rungOf>[]): ReturnType<typeof rungOf> =>
  Object.fromEntries(
    Object.keys(runs[0]!).map((key) => {
      const values = runs.map((run) => run[key as keyof typeof run])
      const sum = values.reduce((a, b) => a + b, 0)
      return [key, key === "failures" ? sum : round(median(values))]
    }),
  ) as unknown as ReturnType<typeof rungOf>

export interface LadderOptions {
  readonly rounds: number
  readonly ms: number
  readonly connections: readonly number[]
}

/** All rungs of the servers that run now. */
export const climb = async (
  cluster: Cluster,
  { rounds, ms, connections }: LadderOptions,
  idle: Idle,
): Promise<{ readonly rungs: readonly Rung[]; readonly runs: readonly Loaded[] }> => {
  const most = connections.at(-1)!
  const places: readonly Pick<Rung, "accounts" | "connections">[] = [
    ...connections.map((n) => ({ accounts: "many" as const, connections: n })),
    ...(cluster.pids.length > 1 ? [{ accounts: "apart" as const, connections: most }] : []),
    { accounts: "one", connections: most },
  ]
  const keysOf = (accounts: Rung["accounts"]) =>
    accounts === "one" ? cluster.keys.slice(0, 1) : cluster.keys.slice(1)
  const found = places.map(() => [] as Loaded[])
  for (let n = 0; n < rounds; n++)
    for (const [at, place] of places.entries())
      found[at]!.push(await load(cluster, chatLoad(keysOf(place.accounts), place.connections, ms)))
  return {
    rungs: places.map((place, at) => ({
      processes: cluster.pids.length,
      ...place,
      ...middleOf(found[at]!.map((run) => rungOf(run, idle))),
    })),
    runs: found.flat(),
  }
}

/** A kind of request under a steady load: each figure the median of the rounds. */
export const serve = async (
  cluster: Cluster,
  job: Load,
  rounds: number,
  idle: Idle,
): Promise<Served> => {
  await load(cluster, { ...job, ms: job.ms / 2 })
  const runs: Loaded[] = []
  for (let n = 0; n < rounds; n++) runs.push(await load(cluster, job))
  const [first, last] = [runs[0]!, runs.at(-1)!]
  const count = runs.reduce((sum, run) => sum + run.count, 0)
  const middle = (figure: (run: Loaded) => number) => round(median(runs.map(figure)))
  const each = (key: keyof Omit<Costs, "rows" | "bytes" | "count" | "perSecond">) =>
    middle((run) => costsBetween(run.before, run.after, run.count, idle)[key])
  return {
    ...costsBetween(first.before, last.after, count, idle),
    rakitCpuUs: each("rakitCpuUs"),
    postgresCpuUs: each("postgresCpuUs"),
    statements: each("statements"),
    transactions: each("transactions"),
    walBytes: each("walBytes"),
    flushes: each("flushes"),
    perSecond: middle(({ perSecond }) => perSecond),
    p50Ms: middle(({ p50Ms }) => p50Ms),
    p99Ms: middle(({ p99Ms }) => p99Ms),
    failures: runs.reduce((sum, { failures }) => sum + failures, 0),
  }
}
