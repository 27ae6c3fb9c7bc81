import type { Kind } from "./costs.ts"

/** What customers ask for in the busiest second, and what they keep. */
export interface LoadProfile {
  readonly rates: Readonly<Record<Kind | "search", number>>
  /** The mean of a month, to the busiest second. */
  readonly meanOfPeak: number
  /** The part of all paid calls that the busiest account makes. */
  readonly busiestAccount: number
  /** Chunks of knowledge files, of all accounts. */
  readonly chunks: number
  /** The part of them that belongs to accounts that search within the same minutes. */
  readonly activeChunks: number
  /** Chunks of the account that a search goes to. */
  readonly chunksOfAccount: number
  /** How long a customer's server takes for a webhook. */
  readonly receiverMs: number
}

/** 1x: a company with some hundred users, and a product on top of it. */
export const today: LoadProfile = {
  rates: {
    chat: 5,
    chatStream: 15,
    embedding: 5,
    batchLine: 10,
    search: 2,
    webhook: 0.1,
    file: 0.2,
    chunk: 0.2,
  },
  meanOfPeak: 0.25,
  busiestAccount: 0.1,
  chunks: 200_000,
  activeChunks: 0.1,
  chunksOfAccount: 10_000,
  receiverMs: 300,
}

/** Kinds that are admitted and settled, each for itself. */
export const paidKinds = ["chat", "chatStream", "embedding", "batchLine", "search"] as const

/** Paid calls of the busiest second. */
export const callsOf = ({ rates }: LoadProfile): number =>
  paidKinds.reduce((sum, kind) => sum + rates[kind], 0)

/** The machines that the simulation puts below it. */
export interface Hardware {
  readonly databaseCores: number
  readonly databaseMemoryGb: number
  readonly walMbPerSecond: number
}

export const hardware: Hardware = {
  databaseCores: 16,
  databaseMemoryGb: 64,
  walMbPerSecond: 200,
}

/** What can be changed. */
export interface Deployment {
  /** Undefined: as many as the load needs. */
  readonly processes: number | undefined
  /** `maxConnections` of database-postgres, and `max_connections` of PostgreSQL. */
  readonly pool: number
  readonly maxConnections: number
  /** A pooler between them: connections follow the cores of PostgreSQL, not the processes. */
  readonly isPooled: boolean
  /** Searches read from a replica. */
  readonly hasReplica: boolean
  /** Days of calls and transfers in each database, and its disk. */
  readonly daysKept: number
  readonly diskTb: number
  /** Databases, each with its part of the accounts. */
  readonly shards: number
  /** Rows that the balance of one account is divided into. */
  readonly balanceParts: number
  /** `autovacuum_vacuum_cost_limit`. */
  readonly vacuumCostLimit: number
  readonly cacheMb: number
  readonly hasVectorIndex: boolean
  /** Jobs of webhooks and batches outside of PostgreSQL. */
  readonly hasExternalQueue: boolean
}

export const deploymentToday: Deployment = {
  processes: 3,
  pool: 20,
  maxConnections: 100,
  isPooled: false,
  hasReplica: false,
  daysKept: 365,
  diskTb: 2,
  shards: 1,
  balanceParts: 1,
  vacuumCostLimit: 200,
  cacheMb: 256,
  hasVectorIndex: false,
  hasExternalQueue: false,
}

/** How full a process may be, so that calls don't wait long for its thread. */
export const processLoad = 0.6
/** `maxGathered` of billing-ledger, and `atOnce` of webhook-http. */
export const gathered = 128
export const webhooksAtOnce = 500
