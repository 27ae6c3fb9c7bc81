import { type RawBuilder, sql } from "kysely"

/** What must hold, and how it is seen from the rows alone. */
export interface Invariant {
  readonly says: string
  /** How many rows it is proved on. */
  readonly rows: RawBuilder<{ readonly rows: bigint }>
  /** Each breach as a text that names the row. */
  readonly breaches: RawBuilder<{ readonly detail: string }>
}

/** What the proof knows besides the rows. */
export interface ProofContext {
  readonly now: Date
  readonly leaseMs: number
  readonly sweepMs: number
}

export const countOf = (from: RawBuilder<unknown>): Invariant["rows"] => sql`SELECT count(*) AS rows FROM ${from}`
