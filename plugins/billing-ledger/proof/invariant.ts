import { type RawBuilder, sql } from "kysely"

/** Each breach as a text that names the row. */
export type Breaches = RawBuilder<{ readonly detail: string }>

/** What must hold, and how it is seen from the rows alone. */
export interface Invariant {
  readonly says: string
  /** How many rows it is proved on. */
  readonly rows: RawBuilder<{ readonly rows: bigint }>
  /** A function where calls are looked at one by one: so many at once that no statement takes long. */
  readonly breaches: Breaches | ((slice: Slice) => Breaches)
}

/** Calls from one id to another. */
export interface Slice {
  readonly from: string
  /** The first that is not in it; absent: to the end. */
  readonly to: string | undefined
}

/** What the proof knows besides the rows. */
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
