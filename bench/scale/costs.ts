import { readFileSync } from "node:fs"

/** What bench/scale.ts measures and docs/scale.md is made of; times of CPU in µs. */

export interface TableWrites {
  readonly inserted: number
  readonly updated: number
  readonly deleted: number
}

/** Costs of one request, line, delivery, chunk or file; what idle servers cost is not in them. */
export interface Costs {
  /** Units that were done, in all rounds. */
  readonly count: number
  readonly perSecond: number
  readonly rakitCpuUs: number
  readonly postgresCpuUs: number
  readonly statements: number
  readonly transactions: number
  readonly walBytes: number
  /** Flushes of the write-ahead log to the disk. */
  readonly flushes: number
  /** By table; those below 0.005 of a row are left out. */
  readonly rows: Readonly<Record<string, TableWrites>>
  /** Growth of tables with their indexes, by table; those below a byte are left out. */
  readonly bytes: Readonly<Record<string, number>>
}

/** Requests in a closed loop. */
export interface Served extends Costs {
  readonly p50Ms: number
  readonly p99Ms: number
  readonly failures: number
}

/** One place of the ladder: medians of the rounds. */
export interface Rung {
  readonly processes: number
  readonly connections: number
  /**
   * Whose balances the calls change. `many`: those of 400 accounts, all of them on all processes;
   * `apart`: the same, but each process has its own accounts; `one`: all calls are of one account.
   */
  readonly accounts: "many" | "apart" | "one"
  readonly perSecond: number
  readonly p50Ms: number
  readonly p99Ms: number
  readonly failures: number
  readonly rakitCpuUs: number
  readonly postgresCpuUs: number
  readonly statements: number
  readonly transactions: number
  readonly walBytes: number
  readonly flushes: number
  /** Calls of one statement of admission, and of one of settlement. */
  readonly callsPerAdmission: number
  readonly callsPerSettlement: number
  /** Time of such a statement in PostgreSQL, without its commit. */
  readonly admitMs: number
  readonly settleMs: number
  /** Connections that the processes held at PostgreSQL, together. */
  readonly databaseConnections: number
  /** Cores that the load generator took, and that programs took which have nothing to do with it. */
  readonly clientCores: number
  readonly foreignCores: number
}

export interface SearchCosts extends Served {
  readonly chunks: number
  /** The first search after the index has changed: the vectors are read from the database. */
  readonly firstMs: number
}

/** How a part was measured; load averages are those of 1, 5 and 15 minutes. */
export interface Conditions {
  readonly rounds: number
  readonly ms: number
  readonly loadBefore: readonly number[]
  readonly loadAfter: readonly number[]
}

export interface MeasuredCosts {
  /** YYYY-MM-DD, UTC. */
  readonly date: string
  readonly machine: {
    readonly cpu: string
    readonly cores: number
    readonly memoryGb: number
    readonly kernel: string
    readonly node: string
    readonly postgres: string
  }
  /** The parts may come from two runs. */
  readonly conditions: { readonly ladder: Conditions; readonly kinds: Conditions }
  readonly ladder: readonly Rung[]
  /** One flush of the write-ahead log, under load. */
  readonly flushMs: number
  /** A process that nobody calls, per second. */
  readonly idle: {
    readonly rakitCpuUs: number
    readonly postgresCpuUs: number
    readonly statements: number
    readonly transactions: number
    readonly connections: number
    readonly residentMb: number
  }
  readonly kinds: {
    readonly chat: Served
    readonly chatStream: Served
    readonly embedding: Served
    readonly file: Served
    readonly batchLine: Costs
    readonly webhook: Costs
    readonly chunk: Costs
  }
  readonly fileBytes: number
  readonly streamTokens: number
  readonly search: readonly SearchCosts[]
}

export type Kind = keyof MeasuredCosts["kinds"]

export const costsFile = new URL("./costs.json", import.meta.url)

export const readCosts = (): MeasuredCosts => JSON.parse(readFileSync(costsFile, "utf8"))
