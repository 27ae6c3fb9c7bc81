// The kill drill: servers on one PostgreSQL behind nginx, one of which is killed (SIGKILL) again and again, while clients call.
// `npm run build && node --import tsx bench/many.ts [--servers 3] [--connections 64] [--minutes 10] [--every 20]`
// Exits with 1 unless no client needed more than one retry, every accepted batch is complete, and the ledger is exact.
import { availableParallelism, loadavg } from "node:os"
import { setTimeout } from "node:timers/promises"
import { parseArgs } from "node:util"
import OpenAI from "openai"
import pg from "pg"
import { startBatch } from "../testing/batch-client.ts"
import { type ManyServers, startMany } from "../testing/many-servers.ts"
import { codeInWords, fileOf } from "./deployment/code.ts"
import { startInstalled } from "./deployment/postgres-server.ts"
import { printLoadAfter, printMachine } from "./measure/machine.ts"

const { values } = parseArgs({
  options: {
    servers: { type: "string", default: "3" },
    connections: { type: "string", default: "64" },
    minutes: { type: "string", default: "10" },
    every: { type: "string", default: "20" },
  },
})
const minutes = Number(values.minutes)
const everyMs = Number(values.every) * 1_000
const startedMs = performance.now()

const messages = [{ role: "user" as const, content: "one two three four five six seven eight" }]

/** Counts the requests that the client really sends. */
const makeClient = ({ url, apiKey }: ManyServers) => {
  const seen = { calls: 0, requests: 0, failures: [] as string[] }
  const client = new OpenAI({
    baseURL: `${url}/v1`,
    apiKey,
    maxRetries: 1,
    fetch: (input, init) => {
      seen.requests += 1
      return fetch(input, init)
    },
  })
  const count = (call: Promise<unknown>) =>
    call.then(
      () => void seen.calls++,
      (error) => void seen.failures.push(String(error).slice(0, 200)),
    )
  return { seen, client, count }
}

const whole = (client: OpenAI) => client.chat.completions.create({ model: "svc-lyt", messages })

/** A stream that a kill cuts can't be retried by the client; its caller asks once more, too. */
const streamed = async (client: OpenAI, retries: { count: number }) => {
  const once = async () => {
    let end: string | null | undefined
    const stream = await client.chat.completions.create({
      ...{ model: "svc-omni", messages, stream: true as const },
    })
    for await (const { choices } of stream) end = choices[0]?.finish_reason ?? end
    if (end !== "stop") throw new Error("the stream ended without its end")
  }
  await once().catch(() => {
    retries.count += 1
    return once()
  })
}

const load = async (many: ManyServers) => {
  const { seen, client, count } = makeClient(many)
  const cut = { count: 0 }
  const batches: string[] = []
  const state = { isOver: false }
  const loop = async (work: () => Promise<unknown>) => {
    while (!state.isOver) await work()
  }
  const loops = Array.from({ length: Number(values.connections) }, (_, n) =>
    loop(() => count(n % 4 === 0 ? streamed(client, cut) : whole(client))),
  )
  const bodies = Object.fromEntries(
    Array.from({ length: 20 }, (_, n) => [`n${n}`, { model: "svc-lyt", messages }]),
  )
  const batching = loop(async () => {
    // one that was not accepted is no loss; the same goes for its file
    await startBatch(client, "/v1/chat/completions", bodies).then(
      (id) => batches.push(id),
      (error) => seen.failures.push(`batch: ${error}`),
    )
    await setTimeout(2_000)
  })
  let kills = 0
  const endMs = performance.now() + minutes * 60_000
  while (performance.now() < endMs) {
    await setTimeout(Math.min(everyMs, endMs - performance.now()))
    if (performance.now() < endMs) await many.restart(kills++ % many.servers.length, "SIGKILL")
  }
  state.isOver = true
  await Promise.all([...loops, batching])
  return { seen, cut: cut.count, batches, kills, client }
}

const sums = `SELECT
  (SELECT count(*) FROM ledger_account a WHERE account_id NOT LIKE '@%' AND balance_micros <> (
    SELECT coalesce(sum(CASE WHEN credit_account = a.account_id THEN amount_micros ELSE -amount_micros END), 0)
    FROM ledger_transfer t WHERE t.account_id = a.account_id)) AS wrong_balances,
  (SELECT sum(cost_micros) FROM ledger_call) - (SELECT sum(amount_micros) FROM ledger_transfer WHERE type = 'charge') AS uncharged,
  (SELECT count(*) FROM (SELECT FROM ledger_transfer WHERE type = 'charge' GROUP BY call_id HAVING count(*) > 1) t) AS charged_twice,
  (SELECT sum(held_micros) FROM ledger_account) - (SELECT coalesce(sum(hold_micros), 0) FROM ledger_call WHERE state = 'open') AS wrong_holds`

const untilDone = async (client: OpenAI, ids: readonly string[]) => {
  const lost: string[] = []
  for (const id of ids) {
    const limitMs = performance.now() + 120_000
    let batch = await client.batches.retrieve(id)
    while (batch.status !== "completed" && performance.now() < limitMs) {
      await setTimeout(500)
      batch = await client.batches.retrieve(id)
    }
    const { total, completed } = batch.request_counts ?? {}
    if (batch.status !== "completed" || total !== 20 || completed !== 20)
      lost.push(`${id}: ${batch.status} ${completed}/${total}`)
  }
  return lost
}

const postgres = await startInstalled(["max_connections=200"])
const database = await postgres?.another()
if (!postgres || !database) throw new Error("bench/many.ts needs Debian's postgresql")
printMachine("The kill drill: clients, nginx, servers and PostgreSQL share the cores", codeInWords)
const many = await startMany({
  roles: Array.from({ length: Number(values.servers) }, () => "all" as const),
  database,
  backend: fileOf("testing/fakes/backend"),
})
try {
  const sql = new pg.Client({ connectionString: database })
  await sql.connect()
  await sql.query(
    "SELECT ledger_adjust('drill', account_id, 1000000000000, 'drill', now()) FROM accounts_key LIMIT 1",
  )
  const { seen, cut, batches, kills, client } = await load(many)
  const lost = await untilDone(client, batches)
  for (const server of many.servers) await server.stop()
  const fsck = await many.fsck()
  const { rows } = await sql.query(sums)
  const { rows: paid } = await sql.query(
    "SELECT count(*)::int AS calls FROM ledger_call WHERE parent_id IS NULL AND state = 'settled' AND cost_micros > 0",
  )
  await sql.end()
  const checks: readonly (readonly [string, boolean])[] = [
    [`${seen.failures.length} calls failed after one retry`, seen.failures.length === 0],
    [`${lost.length} of ${batches.length} accepted batches lost`, lost.length === 0],
    [
      `sums by SQL: ${JSON.stringify(rows[0])}`,
      Object.values(rows[0]).every((n) => Number(n) === 0),
    ],
    [`rakit fsck: ${fsck.code}`, fsck.code === 0],
  ]
  console.log(
    `\n${values.servers} servers, ${values.connections} connections, ${minutes} minutes, ${kills} kills`,
  )
  console.log(
    `calls ${seen.calls}, retries ${seen.requests - seen.calls - cut} (with polls of batches), streams asked again ${cut}`,
  )
  const unanswered = paid[0].calls - seen.calls
  console.log(`calls paid without an answer (killed between settlement and answer): ${unanswered}`)
  console.log(
    `\nFor bench/README.md: ${new Date().toISOString().slice(0, 10)}, ${availableParallelism()} cores, load ${loadavg()[1]?.toFixed(1)}, ${values.servers} servers, ${values.connections} connections, ${minutes} minutes: ${kills} kills; ${seen.calls} calls, ${seen.failures.length} failed after one retry; ${cut} streams were cut and asked again; ${unanswered} paid without an answer; ${batches.length - lost.length} of ${batches.length} batches complete; sums ${JSON.stringify(rows[0])}, \`fsck\` ${fsck.code}.\n`,
  )
  for (const [text, isGood] of checks) console.log(`${isGood ? "ok" : "WRONG"}  ${text}`)
  for (const text of [...new Set(seen.failures)].slice(0, 5)) console.log(`       ${text}`)
  for (const text of lost) console.log(`       ${text}`)
  if (fsck.code !== 0) console.log(fsck.stdout.slice(-2_000))
  if (!checks.every(([, isGood]) => isGood)) process.exitCode = 1
} finally {
  await many.close()
  await postgres.stop()
}
printLoadAfter(startedMs)
