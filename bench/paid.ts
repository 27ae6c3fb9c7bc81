// What authentication, limits, hold and settlement add to a call at three loads, and how many calls
// a second they leave, with the embedded database.
// `npm run build && node --import tsx bench/paid.ts [--rounds 3] [--ms 3000]`
// `--profile`: where the server spends its CPU time instead.
import { mkdtempSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { readPidFile } from "../plugins/database-postgres/embedded/pid-file.ts"
import { codeInWords } from "./deployment/code.ts"
import { type Deployment, makeDeployment } from "./deployment/deployment.ts"
import { type OpenLoadClient, startOpenLoadClient } from "./deployment/load-client.ts"
import { startServer } from "./deployment/server-process.ts"
import { printLoadAfter, printMachine } from "./measure/machine.ts"
import { readOptions } from "./measure/options.ts"
import { printProfile, profilingInto } from "./measure/profile.ts"
import { alternate } from "./measure/rounds.ts"
import { cpuUsOf, cpuUsOfAll } from "./measure/timed-calls.ts"
import { type Held, highestRate } from "./paid/hold.ts"
import {
  keyOf,
  loads,
  printHeld,
  printLoad,
  type Result,
  type Side,
  sideNames,
} from "./paid/report.ts"
import { record, startBarePeer } from "./path/http-layers.ts"
import { shortChatBody } from "./path/requests.ts"

const options = readOptions({ rounds: 3, ms: 3000 })
const startedMs = performance.now()
const connections = 64
/** Where the search for the highest load begins, and the load under which a profile is taken. */
const firstGuess = 1_000
const path = "/v1/chat/completions"

interface Target {
  readonly name: Side
  readonly url: string
  readonly pid: number
  /** Absent: it has no database. */
  readonly databasePid?: number
}

const offer = async (
  client: OpenLoadClient,
  { url, pid, databasePid }: Target,
  perSecond: number,
  ms = options.ms,
): Promise<Result> => {
  const cpuUs = () => cpuUsOf(pid) ?? Number.NaN
  const databaseUs = () => (databasePid === undefined ? Number.NaN : cpuUsOfAll(databasePid))
  const before = [cpuUs(), databaseUs()] as const
  const body = JSON.stringify(shortChatBody)
  const load = { connections, perSecond, ms }
  const job = { url, path, method: "POST", headers: keyed, body, ...load } as const
  const result = await client.run(job)
  const calls = (perSecond * ms) / 1000
  return {
    ...result,
    cpuUs: (cpuUs() - before[0]) / calls,
    databaseUs: (databaseUs() - before[1]) / calls,
  }
}

const warm = async (client: OpenLoadClient, target: Target) => {
  // V8 needs some ten thousand calls until the code is what it will be
  for (const share of [1 / 4, 1 / 2, 1, 1, 1]) await offer(client, target, share * firstGuess)
}

/**
 * Calls each server now and then. One that is quiet for five seconds collects its garbage, with
 * both cores for some 100 ms, which then belong to the side that is measured.
 */
const keepFromQuiet = (servers: readonly { readonly url: string }[]) => {
  const body = JSON.stringify(shortChatBody)
  const call = async ({ url }: { readonly url: string }) => {
    const response = await fetch(url + path, { method: "POST", headers: keyed, body })
    await response.arrayBuffer()
  }
  const timer = setInterval(() => void Promise.allSettled(servers.map(call)), 2_000)
  return { stop: () => clearInterval(timer) }
}

type Deployments = Readonly<Record<"journal" | "database" | "without", Deployment>>

/** With its embedded database. */
const startPaid = async (deployment: Deployment) => {
  const server = await startServer(deployment)
  const { pid } = readPidFile(join(deployment.folder, "data/postgres"))!
  return { ...server, databasePid: pid }
}

/** Collects how to stop what was started; stops in reverse order. */
const withStops = async (
  run: (kept: <A extends { stop(): unknown }>(running: A) => A) => Promise<void>,
) => {
  const stops: (() => unknown)[] = []
  try {
    await run((running) => {
      stops.unshift(() => running.stop())
      return running
    })
  } finally {
    for (const stop of stops) await stop()
  }
}

const measure = (deployments: Deployments) =>
  withStops(async (kept) => {
    const client = kept(startOpenLoadClient())
    const servers = {
      journal: kept(await startPaid(deployments.journal)),
      database: kept(await startPaid(deployments.database)),
      without: kept(await startServer(deployments.without)),
    }
    kept(keepFromQuiet(Object.values(servers)))
    const { apiKey, folder } = deployments.journal
    const recorded = await record(servers.journal.url, apiKey, path, shortChatBody)
    const bare = kept(await startBarePeer(folder, { [`POST ${path}`]: recorded }))
    const targets: readonly Target[] = Object.entries({ ...servers, bare }).map(
      ([name, server]) => ({ ...server, name: name as Side }),
    )
    for (const target of targets) await warm(client, target)
    const held = new Map<Side, Held>()
    for (const target of targets)
      held.set(
        target.name,
        await highestRate(firstGuess, (perSecond) => offer(client, target, perSecond)),
      )
    const highest = held.get("journal")!.perSecond
    const sides = loads.flatMap((load) =>
      targets.map((target) => ({ name: keyOf(target.name, load.name), target, load })),
    )
    const rounds = await alternate(sides, options.rounds, ({ target, load }) =>
      offer(client, target, Math.round(highest * load.share)),
    )
    for (const load of loads) printLoad(rounds, load, highest)
    printHeld(held)
  })

const profile = async (deployments: Deployments) => {
  const folder = mkdtempSync(join(tmpdir(), "rakit-profile-"))
  for (const name of ["journal", "without"] as const) {
    const own = join(folder, name)
    await withStops(async (kept) => {
      const client = kept(startOpenLoadClient())
      const { url, pid } = kept(await startServer(deployments[name], profilingInto(own)))
      const target = { name, url, pid }
      await warm(client, target)
      for (let round = 0; round < options.rounds; round++) await offer(client, target, firstGuess)
    })
    printProfile(sideNames[name], own)
  }
}

const embedded = { DATABASE_URL: "" }
const deployments = {
  // the default with the embedded database
  journal: makeDeployment({ atOnce: true, env: embedded }),
  database: makeDeployment({ atOnce: true, replyAfter: "database", env: embedded }),
  without: makeDeployment({ atOnce: true, unpaid: true }),
}
const keyed = {
  authorization: `Bearer ${deployments.journal.apiKey}`,
  "content-type": "application/json",
}
try {
  printMachine(
    `What being paid for costs: an open loop over ${connections} connections; client, server and PostgreSQL share the cores`,
    codeInWords,
  )
  console.log(
    "database the embedded PostgreSQL, one for each side; by default its replies leave after the journal",
  )
  console.log(
    `rounds   ${options.rounds}, alternating, ${options.ms} ms for each side; medians of the rounds, times from when a call was due`,
  )
  await (options.profile ? profile(deployments) : measure(deployments))
  printLoadAfter(startedMs)
} finally {
  for (const { remove } of Object.values(deployments)) remove()
}
