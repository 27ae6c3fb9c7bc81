import { type RawBuilder, sql } from "kysely"

/** One row for each breach, with a text that names the row that is wrong. */
export type Breaches = RawBuilder<{ readonly detail: string }>

/** A statement about the ledger, and the queries that check it on the rows alone. */
export interface Invariant {
  readonly says: string
  /** The number of rows it is checked on. */
  readonly rows: RawBuilder<{ readonly rows: bigint }>
  /**
   * A function for checks of single calls, which run slice by slice, so that no statement takes
   * long.
   */
  readonly breaches: Breaches | ((slice: Slice) => Breaches)
}

/** A range of call ids. */
export interface Slice {
  readonly from: string
  /** Exclusive; undefined: to the end. */
  readonly to: string | undefined
}

/** What the checks know besides the rows. */
export interface ProofContext {
  readonly now: Date
  readonly leaseMs: number
  readonly sweepMs: number
}

export const countOf = (from: RawBuilder<unknown>): Invariant["rows"] =>
  sql`SELECT count(*) AS rows FROM ${from}`

export const within = (column: string, { from, to }: Slice): RawBuilder<boolean> =>
  to === undefined
    ? sql<boolean>`${sql.ref(column)} >= ${from}`
    : sql<boolean>`${sql.ref(column)} >= ${from} AND ${sql.ref(column)} < ${to}`
