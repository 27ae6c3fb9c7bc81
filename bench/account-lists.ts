// How long lists of the dashboard and the admin API take when they are large. `node --import tsx
// bench/account-lists.ts [rows]`
// Against RAKIT_TEST_DATABASE_URL, or an embedded server.
import { sql } from "kysely"
import { openApiFixture } from "../plugins/accounts/testing/api-fixture.ts"
import { setup } from "../testing/global-setup.ts"

const rows = Number(process.argv[2] ?? 300_000)
const rounds = 15

const stopServer = await setup()
const api = await openApiFixture()
const { tables, clock } = api
const root = await api.makeAccount({ role: "admin" })
const at = new Date(clock.nowMs())
console.log(
  `${rows} audit entries, ${rows} accounts, ${rows} keys of one account (100 of them work)`,
)
/** Inserts in chunks, so that no statement takes too long. */
const chunk = 10_000
for (let first = 1; first <= rows; first += chunk) {
  const numbers = sql`generate_series(${first}::int, ${Math.min(rows, first + chunk - 1)}::int) n`
  await sql`
    INSERT INTO accounts_account (id, email, password_hash, role, is_first, verified_at, created_at)
    SELECT 'acct_' || md5(n::text), 'person' || n || '@example.com', '-', 'user', false, NULL, ${at}::timestamptz + n * interval '1 ms' FROM ${numbers}`.execute(
    tables,
  )
  await sql`
    INSERT INTO accounts_audit (id, actor, action, target, created_at)
    SELECT 'audit_' || md5(n::text), 'acct_' || n % 50, CASE WHEN n % 10000 = 0 THEN 'account.grant' ELSE 'key.create' END, 'key_' || n, ${at}::timestamptz + n * interval '1 ms'
    FROM ${numbers}`.execute(tables)
  await sql`
    INSERT INTO accounts_key (id, account_id, name, sha256, prefix, mode, scopes, rpm, rpd, concurrency, monthly_cap_micros, created_at, revoked_at)
    SELECT 'key_' || n, ${root.tenant.account}, 'k', sha256(n::text::bytea), 'svc_live_abc', 'live', '{*}', 60, 10000, 10, 0, ${at}, CASE WHEN n <= 100 THEN NULL ELSE ${at}::timestamptz END
    FROM ${numbers}`.execute(tables)
}
await sql`ANALYZE`.execute(tables)

const middle = `audit_${(await sql<{ id: string }>`SELECT md5(${Math.floor(rows / 2)}::text) AS id`.execute(tables)).rows[0]?.id}`
const asked: Readonly<Record<string, string>> = {
  "keys, first page": "GET /dashboard/keys?limit=100",
  "keys, from the middle": `GET /dashboard/keys?limit=100&after=key_${Math.floor(rows / 2)}`,
  "accounts, first page": "GET /admin/accounts?limit=100",
  "accounts, by id": `GET /admin/accounts?q=${root.tenant.account}`,
  "accounts, a part of many e-mails": "GET /admin/accounts?q=example.com&limit=100",
  "accounts, a part of one e-mail": "GET /admin/accounts?q=person4711@",
  "accounts, a part of none": "GET /admin/accounts?q=nobody",
  "audit, first page": "GET /admin/audit?limit=100",
  "audit, from the middle": `GET /admin/audit?limit=100&after=${middle}`,
  "audit, by actor": "GET /admin/audit?actor=acct_7",
  "audit, by a rare action": "GET /admin/audit?action=account.grant",
  "audit, by actor and rare action": "GET /admin/audit?actor=acct_0&action=account.grant",
  "audit, by actor and an action it never did":
    "GET /admin/audit?actor=acct_7&action=account.grant",
  "audit, by target": "GET /admin/audit?target=key_4711",
  "audit, a time long ago": `GET /admin/audit?from=${Math.floor(clock.nowMs() / 1000)}&to=${Math.floor(clock.nowMs() / 1000) + 2}`,
  "audit, all of it as CSV": "GET /admin/audit?format=csv",
}
for (const [name, route] of Object.entries(asked)) {
  const times: number[] = []
  for (let n = 0; n < (route.endsWith("csv") ? 3 : rounds); n++) {
    const startedMs = performance.now()
    const { status } = await api.ask(route, { as: root })
    if (status !== 200) throw new Error(`${route}: ${status}`)
    times.push(performance.now() - startedMs)
  }
  times.sort((a, b) => a - b)
  console.log(
    `${name.padEnd(45)} median ${times[Math.floor(times.length / 2)]?.toFixed(1)} ms, worst ${times.at(-1)?.toFixed(1)} ms`,
  )
}
await api.close()
await stopServer?.()
