// Honest clients beside hostile ones, for minutes: how long the honest wait, compared with the
// same server left in peace just before, and whether memory stays flat. `npm run build && node
// --import tsx bench/soak.ts [--minutes 10] [--warm 5] [--idle 60] [--rest 20]
// [--only "900 headers;bodies"]`
import { type ChildProcess, execFile, fork } from "node:child_process"
import { once } from "node:events"
import { setTimeout } from "node:timers/promises"
import { fileURLToPath } from "node:url"
import { parseArgs, promisify } from "node:util"
import { addAccount, askDashboard } from "../testing/dashboard-client.ts"
import { addTinyModel } from "../testing/platform/tiny-model.ts"
import { codeInWords, root } from "./deployment/code.ts"
import { type Deployment, makeDeployment } from "./deployment/deployment.ts"
import { startServer } from "./deployment/server-process.ts"
import { bodies, startAttack } from "./hostile/attacker.ts"
import { printLoadAfter, printMachine } from "./measure/machine.ts"
import { printHonest, printHostile, printTrend, type RssSample } from "./soak/report.ts"
import type { HonestSamples, HostileCounts } from "./soak/samples.ts"
import { memoryOf } from "./startup/memory.ts"

const { values } = parseArgs({
  options: {
    minutes: { type: "string", default: "10" },
    idle: { type: "string", default: "60" },
    rest: { type: "string", default: "20" },
    only: { type: "string" },
    warm: { type: "string", default: "5" },
  },
})
const loadMs = Number(values.minutes) * 60_000
const idleMs = Number(values.idle) * 1000
const restMs = Number(values.rest) * 1000
const warmMs = Number(values.warm) * 1000
const everyMs = 30_000
const only = values.only?.split(";")
const hostileBodies = !only || only.includes("bodies") ? bodies : []
const startedMs = performance.now()

const admin = { email: "admin@example.com", password: "correct horse battery" }

const startClient = (program: string): ChildProcess =>
  fork(fileURLToPath(new URL(`./soak/${program}`, import.meta.url)), [], {
    execArgv: ["--import", "tsx"],
  })

const ask = async <A>(client: ChildProcess, message: string): Promise<A> => {
  client.send(message)
  const [reply] = await once(client, "message")
  return reply as A
}

/** Waits, and samples the server's memory every half minute. */
const watch = async (pid: number, ms: number, samples: RssSample[]): Promise<void> => {
  const untilMs = performance.now() + ms
  for (let leftMs = ms; leftMs > 0; leftMs = untilMs - performance.now()) {
    await setTimeout(Math.min(everyMs, leftMs))
    const sample = { atMs: performance.now() - startedMs, mb: memoryOf(pid).rssMb }
    samples.push(sample)
    console.log(`  ${Math.round(sample.atMs / 1000)} s: ${Math.round(sample.mb)} MB`)
  }
}

const verifyLedger = async ({ config, env }: Deployment): Promise<string> => {
  const args = ["runtime/rakit.js", "ledger", "verify", "-c", config]
  const { stdout } = await promisify(execFile)(process.execPath, args, {
    cwd: root,
    env: { ...process.env, ...env },
  }).catch((error: { stdout?: string }) => ({ stdout: String(error.stdout ?? error) }))
  return stdout.trim().split("\n").at(-1) ?? ""
}

const measure = async (deployment: Deployment) => {
  const server = await startServer(deployment)
  const honest = startClient("honest-client.ts")
  const hostile = startClient("hostile-client.ts")
  try {
    const { url, pid } = server
    const { token } = await askDashboard(url, "/dashboard/login", "", admin)
    const attacker = await addAccount(url, token)
    const rss: RssSample[] = []
    honest.send({ url, key: deployment.apiKey })
    await setTimeout(warmMs)
    await ask<HonestSamples>(honest, "take") // warms up; not counted
    console.log("\nserver's resident memory, honest clients only")
    await watch(pid, idleMs, [])
    const idle = await ask<HonestSamples>(honest, "take")
    console.log("server's resident memory, hostile clients beside them")
    hostile.send({ url, key: attacker.key, only })
    const { ended } = await startAttack({
      url,
      apiKey: attacker.key,
      names: hostileBodies,
      connections: hostileBodies.length,
      ms: loadMs,
      pauseMs: 1_000,
    })
    await watch(pid, loadMs, rss)
    const loaded = await ask<HonestSamples>(honest, "take")
    const counts = {
      ...(await ask<HostileCounts>(hostile, "finish")),
      [`${hostileBodies.length} hostile bodies`]: await ended,
    }
    hostile.disconnect()
    const late = await ask<HonestSamples>(honest, "finish")
    await setTimeout(restMs)
    const afterMb = memoryOf(pid).rssMb
    return { idle, loaded, late, counts, rss, afterMb }
  } finally {
    for (const client of [honest, hostile]) if (client.connected) client.disconnect()
    await server.stop()
  }
}

printMachine("Honest clients beside hostile ones", codeInWords)
const made = makeDeployment({
  env: { RAKIT_ADMIN_EMAIL: admin.email, RAKIT_ADMIN_PASSWORD: admin.password },
})
// a fake model would split long texts on the thread that answers the honest; a large prefix cache
// would go on filling for the whole ten minutes, which looks like a leak
const model = { id: "svc-lyt", settings: { prefixCacheMb: 32 } }
const deployment = { ...made, config: addTinyModel(made.folder, made.config, model) }
try {
  const { idle, loaded, late, counts, rss, afterMb } = await measure(deployment)
  printHonest(idle, loaded, late)
  printHostile(counts)
  printTrend(rss, afterMb)
  console.log(`\nledger   ${await verifyLedger(deployment)}`)
  printLoadAfter(startedMs)
} finally {
  deployment.remove()
}
