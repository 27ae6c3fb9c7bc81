// What authentication, limits, hold and settlement add to a call, and how many calls a second they
// leave. `npm run build && node --import tsx bench/paid.ts [--rounds 7] [--ms 4000]`
import { codeInWords } from "./deployment/code.ts"
import { type Deployment, makeDeployment } from "./deployment/deployment.ts"
import {
  type OpenLoadClient,
  type OpenLoadResult,
  startOpenLoadClient,
} from "./deployment/load-client.ts"
import { startPostgres } from "./deployment/postgres-server.ts"
import { startServer } from "./deployment/server-process.ts"
import { printLoadAfter, printMachine } from "./measure/machine.ts"
import { readOptions } from "./measure/options.ts"
import { alternate, median, medianOf, type Rounds } from "./measure/rounds.ts"
import { figure, printTable } from "./measure/table.ts"
import { cpuUsOf } from "./measure/timed-calls.ts"
import { type Held, highestRate, holdsInWords } from "./paid/hold.ts"
import { record, startBarePeer } from "./path/http-layers.ts"
import { shortChatBody } from "./path/requests.ts"

const options = readOptions({ rounds: 7, ms: 4000 })
const startedMs = performance.now()
const connections = 64
const offered = 1_000
const path = "/v1/chat/completions"
const goal = { medianMs: 2, p95Ms: 5 }

const sides = {
  with: "rakit, with all of it",
  without: "rakit, without",
  bare: "limit: bare node:http, same bytes",
}
type Side = keyof typeof sides
const sideNames = Object.keys(sides) as Side[]

interface Target {
  readonly name: Side
  readonly url: string
  readonly pid: number
}

type Result = OpenLoadResult & { readonly cpuUs: number }

const offer = async (
  client: OpenLoadClient,
  { url, pid }: Target,
  perSecond: number,
  ms: number,
): Promise<Result> => {
  const beforeUs = cpuUsOf(pid) ?? Number.NaN
  const result = await client.run({
    url,
    path,
    method: "POST",
    headers: keyed,
    body: JSON.stringify(shortChatBody),
    connections,
    perSecond,
    ms,
  })
  return { ...result, cpuUs: ((cpuUsOf(pid) ?? Number.NaN) - beforeUs) / ((perSecond * ms) / 1000) }
}

const printAdded = (rounds: Rounds<Result>) => {
  const middle = (side: Side, of: (result: Result) => number) => figure(medianOf(rounds, side, of))
  const failures = (side: Side) =>
    String((rounds.get(side) ?? []).reduce((sum, one) => sum + one.failures, 0))
  const rows = sideNames.map((side) => [
    sides[side],
    middle(side, ({ achieved }) => achieved),
    middle(side, ({ medianMs }) => medianMs),
    middle(side, ({ p95Ms }) => p95Ms),
    middle(side, ({ p99Ms }) => p99Ms),
    middle(side, ({ cpuUs }) => cpuUs),
    failures(side),
  ])
  printTable(
    `${offered} calls/s offered`,
    ["", "answered/s", "median ms", "p95 ms", "p99 ms", "CPU us a call", "failures"],
    rows,
  )
  const added = (of: (result: Result) => number) =>
    median(
      (rounds.get("with") ?? []).map((one, round) => of(one) - of(rounds.get("without")![round]!)),
    )
  console.log(
    `  added by authentication, limits, hold and settlement: median ${figure(added(({ medianMs }) => medianMs))} ms (goal: under ${goal.medianMs}), p95 ${figure(added(({ p95Ms }) => p95Ms))} ms (goal: under ${goal.p95Ms})`,
  )
}

const printHeld = (held: ReadonlyMap<Side, Held>) => {
  const rows = sideNames.map((side) => {
    const { perSecond, result } = held.get(side)!
    return [
      sides[side],
      figure(perSecond),
      figure(result?.medianMs ?? Number.NaN),
      figure(result?.p95Ms ?? Number.NaN),
    ]
  })
  printTable(
    `the most that is held (${holdsInWords})`,
    ["", "calls/s", "median ms", "p95 ms"],
    rows,
  )
}

const measure = async (deployments: Readonly<Record<"with" | "without", Deployment>>) => {
  const stops: (() => unknown)[] = []
  const kept = <A extends { stop(): unknown }>(running: A): A => {
    stops.unshift(() => running.stop())
    return running
  }
  try {
    const client = kept(startOpenLoadClient())
    const servers = {
      with: kept(await startServer(deployments.with)),
      without: kept(await startServer(deployments.without)),
    }
    const recorded = await record(servers.with.url, deployments.with.apiKey, path, shortChatBody)
    const bare = kept(await startBarePeer(deployments.with.folder, { [`POST ${path}`]: recorded }))
    const targets: readonly Target[] = Object.entries({ ...servers, bare }).map(
      ([name, { url, pid }]) => ({ name: name as Side, url, pid }),
    )
    // a warm-up, not counted
    for (const target of targets)
      for (const rate of [offered / 4, offered / 2, offered])
        await offer(client, target, rate, options.ms / 2)
    const rounds = await alternate(targets, options.rounds, (target) =>
      offer(client, target, offered, options.ms),
    )
    printAdded(rounds)
    const held = new Map<Side, Held>()
    for (const target of targets)
      held.set(
        target.name,
        await highestRate(offered, (perSecond) => offer(client, target, perSecond, options.ms)),
      )
    printHeld(held)
  } finally {
    for (const stop of stops) await stop()
  }
}

const postgres = await startPostgres()
const deployments = {
  with: makeDeployment({
    atOnce: true,
    env: { ...(postgres.url && { DATABASE_URL: postgres.url }) },
  }),
  without: makeDeployment({ atOnce: true, unpaid: true }),
}
const keyed = {
  authorization: `Bearer ${deployments.with.apiKey}`,
  "content-type": "application/json",
}
try {
  printMachine(
    `What being paid for costs: an open loop over ${connections} connections; client, server and PostgreSQL share the cores`,
    codeInWords,
  )
  console.log(`database ${postgres.about}`)
  console.log(
    `rounds   ${options.rounds}, alternating, ${options.ms} ms for each side; medians of the rounds, times from when a call was due`,
  )
  await measure(deployments)
  printLoadAfter(startedMs)
} finally {
  for (const { remove } of Object.values(deployments)) remove()
  await postgres.stop()
}
