// What honest clients see while others send hostile bodies. `npm run build && node --import tsx
// bench/hostile.ts [--ms 6000] [--only PATTERN]`; RAKIT_MODELS=folder takes config/starter.yaml
import { existsSync, readFileSync, rmSync } from "node:fs"
import { join } from "node:path"
import { setTimeout as wait } from "node:timers/promises"
import { parseArgs } from "node:util"
import { codeInWords, root } from "./deployment/code.ts"
import { makeDeployment } from "./deployment/deployment.ts"
import { type ServerProcess, startServer } from "./deployment/server-process.ts"
import { type Answers, bodies, connectionsOf, startAttack } from "./hostile/attacker.ts"
import { probe, type Seen } from "./hostile/probes.ts"
import { printLoadAfter, printMachine } from "./measure/machine.ts"
import { median, percentile } from "./measure/rounds.ts"
import { figure, printTable, times } from "./measure/table.ts"
import { residentMb } from "./startup/memory.ts"

const { values } = parseArgs({ options: { ms: { type: "string" }, only: { type: "string" } } })
const ms = Number(values.ms ?? 6_000)
const only = new RegExp(values.only ?? "")

const mix = bodies
const cases = [
  ...Object.entries(connectionsOf).map(([name, connections]) => ({
    name,
    names: [name],
    connections,
  })),
  { name: "all of them", names: mix, connections: 2 * mix.length },
].filter(({ name }) => only.test(name))

const inWords = (answers: Answers) =>
  Object.entries(answers)
    .map(([status, count]) => `${count} x ${status}`)
    .join(", ")

interface LoopCpu {
  readonly p99Ms: number
  readonly maxMs: number
}

const loopFile = () => join(deployment.folder, "loop-cpu.json")

/** CPU time between two turns of the server's event loop, since the last call. */
const loopCpu = async (pid: number): Promise<LoopCpu> => {
  rmSync(loopFile(), { force: true })
  process.kill(pid, "SIGUSR2")
  while (!existsSync(loopFile())) await wait(5)
  return JSON.parse(readFileSync(loopFile(), "utf8"))
}

const row = (name: string, seen: Seen, idle: Seen, answers: Answers, cpu: LoopCpu) => [
  name,
  figure(cpu.p99Ms),
  figure(cpu.maxMs),
  figure(median(seen.health)),
  figure(percentile(seen.health, 0.99)),
  figure(Math.max(...seen.health)),
  figure(median(seen.firstTokens)),
  times(median(seen.firstTokens) / median(idle.firstTokens)),
  figure(percentile(seen.firstTokens, 0.95)),
  String(seen.failures),
  figure(seen.mostMb),
  inWords(answers),
]

const measure = async (server: ServerProcess, apiKey: string) => {
  await probe(server, apiKey, wait(3_000)) // warms up; not counted
  await loopCpu(server.pid)
  const idle = await probe(server, apiKey, wait(ms))
  const rows = [row("idle", idle, idle, {}, await loopCpu(server.pid))]
  for (const { name, names, connections } of cases) {
    const { ended } = await startAttack({ url: server.url, apiKey, names, connections, ms })
    const seen = await probe(server, apiKey, ended)
    rows.push(row(name, seen, idle, await ended, await loopCpu(server.pid)))
    console.error(rows.at(-1)?.join("  "))
    await wait(1_000)
  }
  return rows
}

const startedMs = performance.now()
printMachine("Hostile bodies beside honest calls; attackers run on the same cores", codeInWords)
const models = process.env.RAKIT_MODELS
const deployment = makeDeployment(
  models ? { config: "starter.yaml", env: { RAKIT_MODELS: models } } : {},
)
try {
  const server = await startServer({
    ...deployment,
    env: {
      ...deployment.env,
      LOOP_CPU_FILE: loopFile(),
      NODE_OPTIONS: `--import ${join(root, "bench/peers/loop-cpu.mjs")}`,
    },
  })
  try {
    const before = residentMb(server.pid)
    const rows = await measure(server, deployment.apiKey)
    const after = residentMb(server.pid)
    await wait(20_000)
    const later = residentMb(server.pid)
    printTable(
      `each for ${ms} ms; honest: /healthz 50 times a second, and one chat at a time`,
      [
        "",
        "turn CPU ms, p99",
        "most",
        "/healthz ms",
        "p99",
        "most",
        "first token ms",
        "to idle",
        "p95",
        "failures",
        "most MB",
        "answers to the attacker",
      ],
      rows,
    )
    console.log(
      `\nRSS ${figure(before)} MB before, ${figure(after)} MB after the last attack, ${figure(later)} MB 20 s later`,
    )
    printLoadAfter(startedMs)
  } finally {
    await server.stop()
  }
} finally {
  deployment.remove()
}
