import { readFileSync } from "node:fs"
import { setTimeout } from "node:timers/promises"
import pg from "pg"
import type { Costs, TableWrites } from "./costs.ts"

/** Sums since the servers started; what lies between two of them was used. */
export interface Reading {
  readonly atMs: number
  readonly rakitCpuUs: number
  readonly postgresCpuUs: number
  /** What all programs of the machine took. */
  readonly busyUs: number
  readonly statements: number
  readonly transactions: number
  readonly walBytes: number
  readonly flushes: number
  readonly flushMs: number
  readonly admissions: Group
  readonly settlements: Group
  readonly rows: Readonly<Record<string, TableWrites>>
  readonly bytes: Readonly<Record<string, number>>
}

/** Statements of the ledger that take many calls at once. */
export interface Group {
  readonly statements: number
  readonly calls: number
  readonly ms: number
}

const usPerTick = 10_000 // USER_HZ is 100 on every Linux

const ticksOf = (pid: number | string, fields: readonly number[]): number => {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "utf8")
    const all = text.slice(text.lastIndexOf(")") + 2).split(" ")
    return fields.reduce((sum, field) => sum + Number(all[field]), 0)
  } catch {
    return 0
  }
}

/** A process, its living children, and those that have ended (proc(5): fields 14 to 17). */
const treeUs = (pid: number): number => {
  let children: readonly string[] = []
  try {
    children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").split(" ").filter(Boolean)
  } catch {}
  const own = ticksOf(pid, [11, 12, 13, 14])
  return usPerTick * children.reduce((sum, child) => sum + ticksOf(child, [11, 12, 13, 14]), own)
}

/** Everything but idle, and waiting for disks; guests are counted in user. */
const busyUs = (): number => {
  const line = readFileSync("/proc/stat", "utf8").split("\n")[0]!
  const [user, nice, system, , , irq, soft, steal] = line.split(/\s+/).slice(1).map(Number)
  return usPerTick * (user! + nice! + system! + irq! + soft! + steal!)
}

const groupSql = (name: string) =>
  `json_build_object('statements', coalesce(sum(calls) FILTER (WHERE query LIKE '%${name}(%'), 0), 'calls', coalesce(sum(rows) FILTER (WHERE query LIKE '%${name}(%'), 0), 'ms', coalesce(sum(total_exec_time) FILTER (WHERE query LIKE '%${name}(%'), 0))`

const serverSql = `SELECT
  (SELECT sum(calls) FROM pg_stat_statements(false) s JOIN pg_database d ON d.oid = s.dbid WHERE datname = $1)::float8 AS statements,
  (SELECT ${groupSql("ledger_admit")} FROM pg_stat_statements s JOIN pg_database d ON d.oid = s.dbid WHERE datname = $1) AS admissions,
  (SELECT ${groupSql("ledger_settle")} FROM pg_stat_statements s JOIN pg_database d ON d.oid = s.dbid WHERE datname = $1) AS settlements,
  (SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = $1)::float8 AS transactions,
  pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::float8 AS wal_bytes,
  (SELECT wal_sync FROM pg_stat_wal)::float8 AS flushes,
  (SELECT wal_sync_time FROM pg_stat_wal) AS flush_ms`

const tablesSql = `SELECT relname AS table, n_tup_ins::float8 AS inserted, n_tup_upd::float8 AS updated,
    n_tup_del::float8 AS deleted, pg_total_relation_size(relid)::float8 AS bytes
  FROM pg_stat_user_tables`

export interface Meter {
  /** Waits `settleMs` first: idle backends take a second to report what they did. */
  read(pids: readonly number[]): Promise<Reading>
  /** Connections of clients at the database now. */
  connections(): Promise<number>
  query(text: string, values?: readonly unknown[]): Promise<readonly Record<string, unknown>[]>
  close(): Promise<void>
}

/** `server`: where the meter has a connection of its own; `database`: what the servers use. */
export const openMeter = async (
  server: { readonly url: string; readonly pid: number },
  database: string,
  settleMs: number,
): Promise<Meter> => {
  const name = new URL(database).pathname.slice(1)
  const own = new pg.Client({ connectionString: server.url })
  await own.connect()
  await own.query("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")
  const query: Meter["query"] = async (text, values = []) => {
    const client = new pg.Client({ connectionString: database })
    await client.connect()
    try {
      return (await client.query(text, [...values])).rows
    } finally {
      await client.end()
    }
  }
  const read: Meter["read"] = async (pids) => {
    const [rakitCpuUs, postgresCpuUs] = [
      pids.reduce((sum, pid) => sum + treeUs(pid), 0),
      treeUs(server.pid),
    ]
    const [busy, atMs] = [busyUs(), performance.now()]
    await setTimeout(settleMs)
    const [sums] = (await own.query(serverSql, [name])).rows
    const tables = await query(tablesSql)
    return {
      atMs,
      rakitCpuUs,
      postgresCpuUs,
      busyUs: busy,
      statements: sums.statements ?? 0,
      transactions: sums.transactions,
      walBytes: sums.wal_bytes,
      flushes: sums.flushes,
      flushMs: sums.flush_ms,
      admissions: sums.admissions,
      // a settlement returns one row, whatever it settles: its calls are the requests
      settlements: sums.settlements,
      rows: Object.fromEntries(
        tables.map(({ table, inserted, updated, deleted }) => [
          String(table),
          { inserted, updated, deleted } as TableWrites,
        ]),
      ),
      bytes: Object.fromEntries(tables.map(({ table, bytes }) => [String(table), Number(bytes)])),
    }
  }
  return {
    read,
    query,
    connections: async () =>
      (
        await own.query(
          "SELECT count(*)::int AS n FROM pg_stat_activity WHERE datname = $1 AND backend_type = 'client backend'",
          [name],
        )
      ).rows[0].n,
    close: () => own.end(),
  }
}

/** What servers that nobody calls use in a second, all together. */
export type Idle = Readonly<
  Record<"rakitCpuUs" | "postgresCpuUs" | "statements" | "transactions", number>
>

const sums = ["rakitCpuUs", "postgresCpuUs", "statements", "transactions"] as const

export const idleBetween = (before: Reading, after: Reading): Idle => {
  const seconds = (after.atMs - before.atMs) / 1000
  return Object.fromEntries(
    sums.map((key) => [key, (after[key] - before[key]) / seconds]),
  ) as unknown as Idle
}

const round = (value: number): number => Number(value.toPrecision(4))

const changes = (before: Reading["rows"], after: Reading["rows"], count: number): Costs["rows"] => {
  const all = Object.entries(after).map(([table, now]) => {
    const then = before[table] ?? { inserted: 0, updated: 0, deleted: 0 }
    const each = (key: keyof TableWrites) => round((now[key] - then[key]) / count)
    return [
      table,
      { inserted: each("inserted"), updated: each("updated"), deleted: each("deleted") },
    ] as const
  })
  return Object.fromEntries(
    all.filter(([, { inserted, updated, deleted }]) => inserted + updated + deleted >= 0.005),
  )
}

/** What a unit cost between two readings. */
export const costsBetween = (
  before: Reading,
  after: Reading,
  count: number,
  idle: Idle,
): Omit<Costs, "perSecond"> => {
  const seconds = (after.atMs - before.atMs) / 1000
  const each = (key: (typeof sums)[number]) =>
    round(Math.max(0, after[key] - before[key] - idle[key] * seconds) / count)
  const grown = Object.entries(after.bytes).map(
    ([table, bytes]) => [table, round((bytes - (before.bytes[table] ?? 0)) / count)] as const,
  )
  return {
    count,
    rakitCpuUs: each("rakitCpuUs"),
    postgresCpuUs: each("postgresCpuUs"),
    statements: each("statements"),
    transactions: each("transactions"),
    walBytes: round((after.walBytes - before.walBytes) / count),
    flushes: round((after.flushes - before.flushes) / count),
    rows: changes(before.rows, after.rows, count),
    bytes: Object.fromEntries(grown.filter(([, bytes]) => bytes >= 1)),
  }
}
