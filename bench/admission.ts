// How much gathering concurrent admissions and settlements into shared statements brings. `npx tsx bench/admission.ts [seconds]`
// Against RAKIT_TEST_DATABASE_URL, or an embedded server that flushes to disk as in production.
import { randomUUID } from "node:crypto"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect } from "effect"
import { defaultLimits, type Log, systemClock, uuidV7 } from "../core/index.ts"
import { fakeMetrics } from "../core/testing/index.ts"
import { makeLedgerBilling } from "../plugins/billing-ledger/ledger-billing.ts"
import { migrations } from "../plugins/billing-ledger/migrations.ts"
import { clusterIn, startUnowned, stopServer } from "../plugins/database-postgres/plugin.ts"
import { openTestDatabase } from "../runtime/testing/test-database.ts"

const seconds = Number(process.argv[2] ?? 5)
const callers = 64
const accounts = 8
const log: Log = { debug: () => {}, info: () => {}, warn: console.warn, error: console.error, with: () => log }

const embedded = async () => {
  if (process.env.RAKIT_TEST_DATABASE_URL) return async () => {}
  const folder = await mkdtemp(join(tmpdir(), "rakit-bench-"))
  const cluster = clusterIn(folder, { maxConnections: 100, durable: true })
  const { user, password, host, port, database } = (await Effect.runPromise(startUnowned(cluster, log)))()
  process.env.RAKIT_TEST_DATABASE_URL = `postgres://${user}:${password}@${host}:${port}/${database}`
  return async () => {
    await Effect.runPromise(stopServer(cluster, log))
    await rm(folder, { recursive: true, force: true })
  }
}

const percentile = (sorted: readonly number[], share: number) => sorted[Math.floor(sorted.length * share)] ?? Number.NaN

interface Result {
  readonly perSecond: number
  readonly medianMs: number
  readonly p95Ms: number
}

const measure = async (maxGathered: number, maxInFlight: number): Promise<Result> => {
  const test = await openTestDatabase()
  await Effect.runPromise(test.database.migrate("billing-ledger", migrations))
  const settings = { maxGathered, maxInFlight, maxWaiting: 1000 }
  const billing = makeLedgerBilling({ database: test.database, clock: systemClock, log, metrics: fakeMetrics(), settings, replica: randomUUID() })
  for (let i = 0; i < accounts; i++) await Effect.runPromise(billing.adjust({ id: `grant-${i}`, account: `account-${i}`, amountMicros: 10n ** 15n, reason: "bench" }))
  const limits = { ...defaultLimits, rpm: 1e9, rpd: 1e9, concurrency: 1e6, monthlyCapMicros: 0n }
  const latencies: number[] = []
  const caller = (n: number, untilMs: number) =>
    Effect.gen(function* () {
      const caller = { tenant: { account: `account-${n % accounts}`, mode: "live" as const }, keyId: `key-${n}`, scopes: ["*"], role: "user" as const, limits }
      while (performance.now() < untilMs) {
        const startedMs = performance.now()
        const id = uuidV7(Date.now())
        yield* billing.admit({ id, caller, endpoint: "chat.completions", requestId: "r", holdMicros: 1000n, counts: "all" })
        yield* billing.settle([{ id, outcome: "settled", costMicros: 500n, usage: {}, httpStatus: 200 }])
        latencies.push(performance.now() - startedMs)
      }
    })
  const loop = (ms: number) => {
    const untilMs = performance.now() + ms
    return Effect.runPromise(Effect.forEach(Array(callers).keys(), (n) => caller(n, untilMs), { concurrency: "unbounded", discard: true }))
  }
  await loop(1000)
  latencies.length = 0
  const startedMs = performance.now()
  await loop(seconds * 1000)
  const perSecond = latencies.length / ((performance.now() - startedMs) / 1000)
  latencies.sort((a, b) => a - b)
  await test.close()
  return { perSecond, medianMs: percentile(latencies, 0.5), p95Ms: percentile(latencies, 0.95) }
}

const show = (name: string, { perSecond, medianMs, p95Ms }: Result) =>
  console.log(`${name.padEnd(24)} ${perSecond.toFixed(0).padStart(6)} calls/s   admit+settle median ${medianMs.toFixed(1)} ms, p95 ${p95Ms.toFixed(1)} ms`)

const stop = await embedded()
try {
  const single = await measure(1, callers)
  const gathered = await measure(128, 2)
  show("one statement a call", single)
  show("gathered, 128 and 2", gathered)
  console.log(
    `ratio: ${(gathered.perSecond / single.perSecond).toFixed(1)} times the calls/s, ${(single.p95Ms / gathered.p95Ms).toFixed(1)} times shorter p95 (${callers} callers, ${accounts} accounts)`,
  )
} finally {
  await stop()
}
