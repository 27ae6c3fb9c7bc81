// What one call, line, delivery, search and file costs Rakit and PostgreSQL, with 1, 2 and 3 servers on one database.
// `npm run build && node --import tsx bench/scale.ts [--rounds 3] [--ms 4000] [--connections 1,8,32,128,384]
// [--lines 2000] [--batches 40] [--chunks 1000,10000,50000] [--servers 3] [--settle 1300] [--only ladder] [--write]`
// `--only ladder` or `--only kinds` measures one part and keeps the other as it was written. `--write` puts the figures into bench/scale/costs.json, which `npm run docs` makes docs/scale.md of.
import { execFileSync } from "node:child_process"
import { readFileSync, writeFileSync } from "node:fs"
import { availableParallelism, cpus, loadavg, release, totalmem } from "node:os"
import { setTimeout } from "node:timers/promises"
import { fileURLToPath } from "node:url"
import { parseArgs } from "node:util"
import { openReceiver, type Receiver } from "../testing/receiver.ts"
import { codeInWords } from "./deployment/code.ts"
import { printLoadAfter, printMachine } from "./measure/machine.ts"
import { figure, printTable } from "./measure/table.ts"
import { type Cluster, startCluster } from "./scale/cluster.ts"
import {
  type Conditions,
  type Costs,
  costsFile,
  type MeasuredCosts,
  type Rung,
  readCosts,
} from "./scale/costs.ts"
import * as kinds from "./scale/kinds.ts"
import { chatLoad, climb, type Loaded, load } from "./scale/ladder.ts"
import { type Idle, idleBetween } from "./scale/meter.ts"

const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "3" },
    ms: { type: "string", default: "4000" },
    connections: { type: "string", default: "1,8,32,128,384" },
    lines: { type: "string", default: "2000" },
    batches: { type: "string", default: "40" },
    chunks: { type: "string", default: "1000,10000,50000" },
    servers: { type: "string", default: "3" },
    idle: { type: "string", default: "10000" },
    settle: { type: "string", default: "1300" },
    only: { type: "string", default: "ladder,kinds" },
    write: { type: "boolean", default: false },
  },
})
const numbers = (text: string): readonly number[] => {
  const all = text.split(",").map(Number)
  if (!all.every((n) => n > 0)) throw new Error(`"${text}" must be numbers above 0, with commas`)
  return all
}
const one = (text: string): number => numbers(text)[0]!
const options = {
  rounds: one(values.rounds),
  ms: one(values.ms),
  connections: numbers(values.connections),
  lines: one(values.lines),
  batches: one(values.batches),
  chunks: numbers(values.chunks),
}
const only = values.only.split(",")
if (only.some((part) => !["ladder", "kinds"].includes(part)))
  throw new Error(`--only must be ladder or kinds, not "${values.only}"`)
const startedMs = performance.now()

const residentMb = (pid: number): number =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))![1]) / 1024

/** Servers that nobody calls. */
const measureIdle = async ({ meter, pids }: Cluster): Promise<Idle> => {
  const before = await meter.read(pids)
  await setTimeout(one(values.idle))
  return idleBetween(before, await meter.read(pids))
}

/** A new cluster for one part, and how it was measured. */
const withCluster = async <Found>(
  measurePart: (cluster: Cluster, receiver: Receiver) => Promise<Found>,
): Promise<{
  readonly found: Found
  readonly conditions: Conditions
  readonly postgres: string
}> => {
  const loadBefore = loadavg()
  const receiver = await openReceiver()
  const cluster = await startCluster(receiver.host, one(values.settle))
  try {
    const found = await measurePart(cluster, receiver)
    const { rounds, ms } = options
    const conditions = { rounds, ms, loadBefore, loadAfter: loadavg() }
    return { found, conditions, postgres: cluster.about }
  } finally {
    await cluster.stop()
    await receiver.close()
  }
}

/** V8 needs some ten thousand calls until the code is what it will be. */
const warm = (cluster: Cluster) =>
  load(cluster, chatLoad(cluster.keys.slice(1), 64, options.ms * 2 * (cluster.pids.length + 1)))

/** Kinds of work, on one server. */
const measureKinds = async (cluster: Cluster, receiver: Receiver) => {
  await warm(cluster)
  const idle = await measureIdle(cluster)
  const served = await kinds.serveKinds(cluster, options, idle)
  const batchLine = await kinds.runLines(cluster, options, idle)
  const webhook = await kinds.deliver(cluster, receiver, options, idle)
  const { chunk, search } = await kinds.searchIndexes(cluster, options, idle)
  const all = { ...served, batchLine, webhook, chunk }
  printKinds({
    ...all,
    ...Object.fromEntries(search.map((costs) => [`search, ${costs.chunks} chunks`, costs])),
  })
  const { fileBytes, streamTokens } = kinds
  return { kinds: all, search, fileBytes, streamTokens }
}

const idleOf = async (cluster: Cluster, idle: Idle): Promise<MeasuredCosts["idle"]> => {
  const each = (value: number) => Number((value / cluster.pids.length).toPrecision(4))
  return {
    rakitCpuUs: each(idle.rakitCpuUs),
    postgresCpuUs: each(idle.postgresCpuUs),
    statements: each(idle.statements),
    transactions: each(idle.transactions),
    connections: each(await cluster.meter.connections()),
    residentMb: each(cluster.pids.reduce((sum, pid) => sum + residentMb(pid), 0)),
  }
}

/** Chat calls on one server, then on one more each time. */
const measureLadder = async (cluster: Cluster) => {
  const ladder: Rung[] = []
  const runs: Loaded[] = []
  let idle: Idle | undefined
  for (let servers = 1; servers <= one(values.servers); servers++) {
    if (servers > 1) await cluster.addServer()
    await warm(cluster)
    idle = await measureIdle(cluster)
    const climbed = await climb(cluster, options, idle)
    ladder.push(...climbed.rungs)
    runs.push(...climbed.runs)
    printRungs(climbed.rungs)
  }
  return { ladder, flushMs: kinds.middleOfFlushes(runs), idle: await idleOf(cluster, idle!) }
}

const printRungs = (rungs: readonly Rung[]): void =>
  printTable(
    `${rungs[0]!.processes} servers, chat calls`,
    [
      "connections",
      "calls/s",
      "p50 ms",
      "p99 ms",
      "CPU us",
      "Postgres us",
      "foreign cores",
      "failures",
    ],
    rungs.map((rung) => [
      `${rung.connections}${{ many: "", apart: ", accounts apart", one: ", one account" }[rung.accounts]}`,
      ...[rung.perSecond, rung.p50Ms, rung.p99Ms, rung.rakitCpuUs, rung.postgresCpuUs].map(figure),
      figure(rung.foreignCores),
      String(rung.failures),
    ]),
  )

const printKinds = (all: Readonly<Record<string, Costs>>): void =>
  printTable(
    "Costs of one",
    ["", "a second", "CPU us", "Postgres us", "statements", "WAL bytes", "bytes kept"],
    Object.entries(all).map(([name, costs]) => [
      name,
      ...[costs.perSecond, costs.rakitCpuUs, costs.postgresCpuUs, costs.statements].map(figure),
      figure(costs.walBytes),
      figure(Object.values(costs.bytes).reduce((sum, bytes) => sum + bytes, 0)),
    ]),
  )

const measure = async (): Promise<MeasuredCosts> => {
  const kept = only.length === 2 ? undefined : readCosts()
  const climbed = only.includes("ladder") ? await withCluster(measureLadder) : undefined
  const served = only.includes("kinds") ? await withCluster(measureKinds) : undefined
  return {
    ...kept,
    ...climbed?.found,
    ...served?.found,
    conditions: {
      ladder: climbed?.conditions ?? kept!.conditions.ladder,
      kinds: served?.conditions ?? kept!.conditions.kinds,
    },
    date: new Date().toISOString().slice(0, 10),
    machine: {
      cpu: cpus()[0]!.model.trim(),
      cores: availableParallelism(),
      memoryGb: Math.round(totalmem() / 2 ** 30),
      kernel: release(),
      node: process.version,
      postgres: (climbed ?? served)!.postgres,
    },
  } as MeasuredCosts
}

printMachine("What scales how: load generator, servers and PostgreSQL share the cores", codeInWords)
const costs = await measure()
if (values.write) {
  writeFileSync(costsFile, JSON.stringify(costs))
  execFileSync("npx", ["biome", "format", "--write", fileURLToPath(costsFile)], { stdio: "ignore" })
}
printLoadAfter(startedMs)
