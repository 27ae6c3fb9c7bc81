import { Effect, Stream } from "effect"
import { sql } from "kysely"
import {
  type Caller,
  type Database,
  defaultLimits,
  type Endpoint,
  systemClock,
} from "../core/index.ts"
import { callsEndpoint } from "../plugins/billing-ledger/dashboard/calls-endpoint.ts"
import { ledgerEndpoint } from "../plugins/billing-ledger/dashboard/ledger-endpoint.ts"
import { revenueEndpoint } from "../plugins/billing-ledger/dashboard/revenue-endpoint.ts"
import {
  errorsEndpoint,
  latencyEndpoint,
} from "../plugins/billing-ledger/dashboard/timeline-endpoints.ts"
import { usageEndpoint } from "../plugins/billing-ledger/dashboard/usage-endpoint.ts"
import { migrations } from "../plugins/billing-ledger/migrations.ts"
import { verifyLedger } from "../plugins/billing-ledger/proof/verify.ts"
import { sessionReceiptEndpoint } from "../plugins/billing-ledger/receipts/endpoints.ts"
import { callPathFixture, fakeSigner } from "../testing/fakes.ts"
import { openTestDatabase } from "../testing/postgres.ts"
import { startEmbedded } from "./deployment/embedded-postgres.ts"
import { consoleLog } from "./measure/console-log.ts"

const rounds = Number(process.argv[2] ?? 15)
const calls = 300_000
const run = (database: Database, query: ReturnType<typeof sql>) =>
  Effect.runPromise(database.run(() => query.execute(database.queries())))

const hourMs = 3_600_000
const lastMs = Math.floor(Date.now() / hourMs) * hourMs

const rupiah = {
  output: "0",
  cacheRead: "0",
  cacheWrite: "0",
  image: "0",
  audioSecond: "0",
  searchUnit: "0",
}
const used = {
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
  outputTokens: 50,
  reasoningTokens: 0,
  images: 0,
  audioSeconds: 0,
  searchUnits: 0,
}

/**
 * Calls from `spanMs` ago to the last whole hour, evenly; 16 keys, 4 models and 4 endpoints, so
 * that over a year nearly each has an hour of its own. One of four is a line of a batch.
 */
const seed = async (database: Database, account: string, n: number, spanMs: number) => {
  const grant = 50_000_000_000n
  const at = sql`${new Date(lastMs - spanMs)}::timestamptz + i::float8 * ${spanMs / n}::float8 * interval '1 ms'`
  await run(
    database,
    sql`INSERT INTO ledger_call (id, account_id, key_id, mode, counts, state, admitted_at, settled_at, replica_id, parent_id, endpoint, request_id, model, prices, hold_micros, cost_micros, usage, input_tokens, output_tokens, http_status, stages, total_ms, first_ms, error_code)
      SELECT gen_random_uuid(), ${account}, ${account} || '-key-' || i * 7 % 16, 'live', 'all', 'settled', ${at}, ${at}, gen_random_uuid(), CASE WHEN i % 4 = 0 THEN 'batch-' || i / 1000 END, 'endpoint-' || i / 16 % 4, 'req-' || i, 'model-' || i / 64 % 4,
        ${JSON.stringify({ factor: 1, models: { m: { input: "5", ...rupiah } } })}::json, 1000, 500, ${JSON.stringify({ m: { inputTokens: 100, ...used } })}::jsonb, 100, 50,
        CASE WHEN i % 50 = 0 THEN 400 ELSE 200 END, ${JSON.stringify({ auth: 0.3, plan: 1.2, limits: 1.4, hold: 0.3, queue: 2.1, prefill: 51.2, decode: 812.5 })}::json,
        exp(3 + i::bigint * 7919 % 600 / 100.0), exp(2 + i::bigint * 7919 % 300 / 100.0), CASE WHEN i % 50 = 0 THEN 'backend_error' END FROM generate_series(0, ${n - 1}::int) i`,
  )
  await run(
    database,
    sql`INSERT INTO ledger_transfer (account_id, debit_account, credit_account, amount_micros, balance_micros, type, entry_id, at)
      VALUES (${account}, '@grants', ${account}, ${String(grant)}::bigint, ${String(grant)}::bigint, 'grant', ${account}, ${new Date(lastMs - spanMs)})`,
  )
  await run(
    database,
    sql`INSERT INTO ledger_transfer (account_id, debit_account, credit_account, amount_micros, balance_micros, type, call_id, at)
      SELECT account_id, account_id, '@revenue', cost_micros, ${String(grant)}::bigint - cost_micros * row_number() OVER (ORDER BY admitted_at), 'charge', id, admitted_at
      FROM ledger_call WHERE account_id = ${account} ORDER BY admitted_at`,
  )
  await run(
    database,
    sql`INSERT INTO ledger_usage SELECT account_id, mode, ledger_hour(admitted_at), key_id, model, endpoint, count(*), count(*) FILTER (WHERE ledger_failed(state, http_status)),
      sum(input_tokens), sum(output_tokens), sum(cost_micros) FROM ledger_call WHERE account_id = ${account} GROUP BY 1, 2, 3, 4, 5, 6`,
  )
  await run(
    database,
    sql`WITH measured AS (
        SELECT (admitted_at AT TIME ZONE 'UTC')::date AS day, model, ledger_bucket(total_ms) AS total, ledger_bucket(first_ms) AS first, count(*) AS n
        FROM ledger_call WHERE account_id = ${account} AND http_status < 400 GROUP BY 1, 2, 3, 4
      )
      INSERT INTO ledger_latency SELECT ${account}, 'live', day, model, bucket, sum(totals), sum(firsts) FROM (
        SELECT day, model, total AS bucket, n AS totals, 0 AS firsts FROM measured UNION ALL SELECT day, model, first, 0, n FROM measured
      ) m GROUP BY day, model, bucket`,
  )
  await run(
    database,
    sql`INSERT INTO ledger_account (account_id, balance_micros) VALUES (${account}, ${String(grant - BigInt(n) * 500n)}::bigint)`,
  )
}

const percentile = (sorted: readonly number[], share: number) =>
  sorted[Math.floor(sorted.length * share)] ?? Number.NaN

const openReports = (database: Database) => {
  const fixture = callPathFixture()
  const deployment = {
    name: "bench",
    dataDir: "/nonexistent",
    modelsDir: "/nonexistent",
    baseUrl: "http://127.0.0.1",
    mode: "server" as const,
  }
  const started = Effect.succeed({
    database,
    clock: systemClock,
    log: consoleLog,
    signer: fakeSigner(),
    deployment,
    flushRefused: Effect.void,
    drained: Effect.void,
  })
  const [usage, entries, receipt, log, latency, errors, revenue] = [
    usageEndpoint(started),
    ledgerEndpoint(started),
    sessionReceiptEndpoint(started),
    callsEndpoint(started),
    latencyEndpoint(started),
    errorsEndpoint(started),
    revenueEndpoint(started),
  ]
  const session = (account: string): Caller => ({
    tenant: { account, mode: "live" },
    scopes: [],
    role: account === "admin" ? "admin" : "user",
    limits: defaultLimits,
  })
  /** Serializes the reply; returns its size in bytes. */
  const ask = (
    endpoint: Endpoint,
    account: string,
    query: Record<string, string>,
    params = {},
  ): Promise<{ readonly bytes: number; readonly json: unknown }> => {
    const reading = Effect.gen(function* () {
      const { reply } = yield* fixture.path.run(
        endpoint,
        fixture.input(undefined, { caller: session(account), query, params }),
      )
      if ("bytes" in reply)
        return {
          bytes: yield* Stream.runFold(
            reply.bytes,
            () => 0,
            (sum, piece) => sum + piece.length,
          ),
          json: undefined,
        }
      return "json" in reply
        ? { bytes: JSON.stringify(reply.json).length, json: reply.json }
        : { bytes: 0, json: undefined }
    })
    return Effect.runPromise(Effect.scoped(reading))
  }
  return {
    usage: (account: string, query: Record<string, string> = {}) => ask(usage, account, query),
    entries: (account: string, query: Record<string, string> = {}) => ask(entries, account, query),
    calls: (account: string, query: Record<string, string> = {}) => ask(log, account, query),
    latency: (account: string, query: Record<string, string> = {}) => ask(latency, account, query),
    errors: (account: string, query: Record<string, string> = {}) => ask(errors, account, query),
    revenue: (query: Record<string, string> = {}) => ask(revenue, "admin", query),
    receipt: (account: string, call_id: string) => ask(receipt, account, {}, { call_id }),
  }
}

const dayOf = (ms: number) => new Date(ms).toISOString().slice(0, 10)
const dayMs = 24 * hourMs
const secondsOf = (ms: number) => String(Math.floor(ms / 1000))

const questionsOf = async (
  reports: ReturnType<typeof openReports>,
): Promise<Record<string, () => Promise<{ readonly bytes: number }>>> => {
  type Page = { json: { data: { call_id: string }[]; last_id: string } }
  const year = { from: dayOf(lastMs - 365 * dayMs) }
  const middle = (await reports.entries("year", {
    limit: "1",
    to: dayOf(lastMs - 180 * dayMs),
  })) as unknown as Page
  const cut = { from: secondsOf(lastMs - 1.75 * hourMs), to: secondsOf(lastMs - 1) }
  return {
    "usage, 30 days": () => reports.usage("year"),
    "usage, 30 days, by day": () => reports.usage("year", { group_by: "day" }),
    "usage, 30 days, by model,key,endpoint": () =>
      reports.usage("year", { group_by: "model,key,endpoint" }),
    "usage, 12 h, by day,key,model,endpoint": () =>
      reports.usage("year", {
        from: secondsOf(lastMs - dayMs / 2),
        group_by: "day,key,model,endpoint",
      }),
    "usage, a year: 300,000 rows": () => reports.usage("year", year),
    "usage, a year, by day": () => reports.usage("year", { ...year, group_by: "day" }),
    "usage, a year, by key,model,endpoint": () =>
      reports.usage("year", { ...year, group_by: "key,model,endpoint" }),
    "usage, 300,000 calls one by one": () => reports.usage("burst", cut),
    "ledger, first page": () => reports.entries("year"),
    "ledger, 100 from the middle": () =>
      reports.entries("year", { limit: "100", after: middle.json.last_id }),
    "ledger, a day half a year ago": () =>
      reports.entries("year", {
        from: dayOf(lastMs - 180 * dayMs),
        to: dayOf(lastMs - 180 * dayMs),
      }),
    "ledger, the one grant": () => reports.entries("year", { type: "grant" }),
    "calls, first page": () => reports.calls("year"),
    "calls, 50 from the middle": () =>
      reports.calls("year", { limit: "50", after: middle.json.data[0]?.call_id ?? "" }),
    "calls, the failed ones": () => reports.calls("year", { status: "failed", limit: "50" }),
    "calls, refused ones, of which there are none": () =>
      reports.calls("year", { status: "refused", limit: "50" }),
    "calls, of one error code": () => reports.calls("year", { code: "backend_error", limit: "50" }),
    "calls, of a code that there is none": () =>
      reports.calls("year", { code: "none", limit: "50" }),
    "calls, a model that had none": () => reports.calls("year", { model: "none", limit: "50" }),
    "latency, 30 days": () => reports.latency("year"),
    "latency, a year": () => reports.latency("year", year),
    "latency, a year, one model": () => reports.latency("year", { ...year, model: "model-1" }),
    "latency, 48 h by the hour": () =>
      reports.latency("year", { step: "hour", from: secondsOf(lastMs - 2 * dayMs) }),
    "latency by the hour, 300,000 calls": () =>
      reports.latency("burst", { step: "hour", from: secondsOf(lastMs - dayMs) }),
    "errors, a year: 6,000 calls": () => reports.errors("year", year),
    "revenue of all accounts, 30 days": () => reports.revenue(),
    "revenue of all accounts, a year: 400,000 rows": () => reports.revenue(year),
    "revenue of all accounts, a year, as CSV": () => reports.revenue({ ...year, format: "csv" }),
    receipt: () => reports.receipt("year", middle.json.data[0]?.call_id ?? ""),
  }
}

const stop = await startEmbedded({ maxConnections: 20, durable: false })
try {
  const test = await openTestDatabase()
  const { database } = test
  await Effect.runPromise(database.migrate("billing-ledger", migrations))
  await seed(database, "year", calls, 365 * dayMs)
  await seed(database, "burst", calls, 2 * hourMs)
  for (let i = 0; i < 5; i++) await seed(database, `other-${i}`, 20_000, 90 * dayMs)
  for (const table of ["ledger_call", "ledger_usage", "ledger_transfer", "ledger_latency"])
    await run(database, sql`VACUUM ANALYZE ${sql.table(table)}`)
  const { rows } = await run(
    database,
    sql`SELECT count(*) AS n FROM ledger_usage WHERE account_id = 'year'`,
  )
  console.log(
    `${calls} calls in a year (${(rows[0] as { n: bigint }).n} rows of usage), ${calls} in two hours, and 5 smaller accounts`,
  )
  const reports = openReports(database)
  const questions = {
    "SELECT 1": async () => ({ bytes: (await run(database, sql`SELECT 1`)).rows.length }),
    ...(await questionsOf(reports)),
  }
  const names = Object.keys(questions) as (keyof typeof questions)[]
  const seen = new Map(names.map((name) => [name, { ms: [] as number[], bytes: 0 }]))
  // alternating, there and back, so that other load on the machine affects all
  for (let round = -2; round < rounds; round++)
    for (const name of round % 2 ? names : names.toReversed()) {
      const startedMs = performance.now()
      const { bytes } = await questions[name]!()
      const one = seen.get(name)
      if (one && round >= 0) one.ms.push(performance.now() - startedMs)
      if (one) one.bytes = bytes
    }
  const least = percentile(seen.get("SELECT 1")?.ms.toSorted((a, b) => a - b) ?? [], 0.5)
  for (const [name, { ms, bytes }] of seen) {
    const sorted = ms.toSorted((a, b) => a - b)
    const median = percentile(sorted, 0.5)
    console.log(
      `${name.padEnd(46)} median ${median.toFixed(1).padStart(7)} ms, p95 ${percentile(sorted, 0.95).toFixed(1).padStart(7)} ms  ${(median / least).toFixed(0).padStart(5)} x SELECT 1  ${bytes} bytes`,
    )
  }
  for (const [name, work] of [
    ["ledger as CSV, 300,001 rows", () => reports.entries("year", { format: "csv" })],
    [
      "verify, 700,000 calls",
      async () => {
        const limits = { now: new Date(), leaseMs: 1, sweepMs: 1 }
        const { faults } = await Effect.runPromise(verifyLedger(database, limits))
        console.log(faults.length === 0 ? "sound" : "not sound")
      },
    ],
  ] as const) {
    const startedMs = performance.now()
    await work()
    console.log(
      `${name.padEnd(46)} once   ${(performance.now() - startedMs).toFixed(0).padStart(7)} ms`,
    )
  }
  await test.close()
} finally {
  await stop()
}
