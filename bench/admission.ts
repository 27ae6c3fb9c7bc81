// How much group commit of concurrent admissions and settlements brings. `npx tsx
// bench/admission.ts [seconds]`
// Against RAKIT_TEST_DATABASE_URL, or an embedded server that flushes to disk as in production.
import { randomUUID } from "node:crypto"
import { Effect } from "effect"
import { defaultLimits, systemClock, uuidV7 } from "../core/index.ts"
import { makeLedgerBilling } from "../plugins/billing-ledger/ledger-billing.ts"
import { migrations } from "../plugins/billing-ledger/migrations.ts"
import { fakeMetrics } from "../testing/fakes.ts"
import { openTestDatabase } from "../testing/postgres.ts"
import { startEmbedded } from "./deployment/embedded-postgres.ts"
import { consoleLog } from "./measure/console-log.ts"

const seconds = Number(process.argv[2] ?? 5)
const callers = 64
const accounts = 8
const percentile = (sorted: readonly number[], share: number) =>
  sorted[Math.floor(sorted.length * share)] ?? Number.NaN

interface BenchLedger {
  /** Runs calls for `ms`; returns the durations of the completed ones, in ms. */
  round(ms: number): Promise<readonly number[]>
  close(): Promise<void>
}

const limits = { ...defaultLimits, rpm: 1e9, rpd: 1e9, concurrency: 1e6 }

const openLedger = async (maxGathered: number, maxInFlight: number): Promise<BenchLedger> => {
  const test = await openTestDatabase()
  await Effect.runPromise(test.database.migrate("billing-ledger", migrations))
  const settings = { maxGathered, maxInFlight, maxWaiting: 1000 }
  const billing = makeLedgerBilling({
    database: test.database,
    clock: systemClock,
    log: consoleLog,
    metrics: fakeMetrics(),
    settings,
    replica: randomUUID(),
  })
  for (let i = 0; i < accounts; i++)
    await Effect.runPromise(
      billing.adjust({
        id: `grant-${i}`,
        account: `account-${i}`,
        amountMicros: 10n ** 15n,
        reason: "bench",
      }),
    )
  const call = (n: number) =>
    Effect.gen(function* () {
      const id = uuidV7(Date.now())
      const tenant = { account: `account-${n % accounts}`, mode: "live" as const }
      const caller = { tenant, keyId: `key-${n}`, scopes: ["*"], role: "user" as const, limits }
      yield* billing.admit({
        id,
        caller,
        endpoint: "chat.completions",
        requestId: "r",
        holdMicros: 1000n,
        counts: "all",
      })
      yield* billing.settle([
        { id, outcome: "settled", costMicros: 500n, usage: {}, httpStatus: 200 },
      ])
    })
  const round = async (ms: number) => {
    const durations: number[] = []
    const untilMs = performance.now() + ms
    const work = Effect.fnUntraced(function* (n: number) {
      for (let startedMs = performance.now(); startedMs < untilMs; startedMs = performance.now()) {
        yield* call(n)
        durations.push(performance.now() - startedMs)
      }
    })
    await Effect.runPromise(
      Effect.forEach(Array(callers).keys(), work, { concurrency: "unbounded", discard: true }),
    )
    return durations
  }
  return { round, close: test.close }
}

const show = (name: string, perSecond: number, sorted: readonly number[]) =>
  console.log(
    `${name.padEnd(36)} ${perSecond.toFixed(0).padStart(6)} calls/s   admit+settle median ${percentile(sorted, 0.5).toFixed(1)} ms, p95 ${percentile(sorted, 0.95).toFixed(1)} ms`,
  )

const stop = await startEmbedded({ maxConnections: 100, durable: true })
try {
  const ledgers = {
    "one statement a call": await openLedger(1, callers),
    "group commit, up to 128 a statement": await openLedger(128, 1),
  }
  for (const ledger of Object.values(ledgers)) await ledger.round(1000)
  // alternating, so that other load on the machine affects both
  const durations = Object.values(ledgers).map((): number[] => [])
  for (let turn = 0; turn < seconds; turn++)
    for (const [i, ledger] of Object.values(ledgers).entries())
      durations[i]?.push(...(await ledger.round(1000)))
  const sorted = durations.map((one) => one.toSorted((a, b) => a - b))
  const [single = [], grouped = []] = sorted
  Object.keys(ledgers).forEach((name, i) => {
    show(name, (sorted[i]?.length ?? 0) / seconds, sorted[i] ?? [])
  })
  const faster = grouped.length / single.length
  const shorter = percentile(single, 0.95) / percentile(grouped, 0.95)
  console.log(
    `ratio: ${faster.toFixed(1)} times the calls/s, ${shorter.toFixed(1)} times shorter p95 (${callers} callers, ${accounts} accounts)`,
  )
  for (const ledger of Object.values(ledgers)) await ledger.close()
} finally {
  await stop()
}
