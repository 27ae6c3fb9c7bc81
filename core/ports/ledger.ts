import type { Effect } from "effect"
import type { PortError } from "../errors.ts"
import type { Micros } from "../money.ts"

/** A row, or a sum, that breaks one of the ledger's invariants. */
export interface LedgerFault {
  readonly invariant: string
  readonly detail: string
}

export interface LedgerProof {
  /** Each invariant in words, with the number of rows checked. */
  readonly checked: readonly { readonly invariant: string; readonly rows: number }[]
  readonly faults: readonly LedgerFault[]
}

export type ReportGroup = "account" | "key" | "model" | "day"

export interface ReportRow {
  /** Values in the requested order; a day is YYYY-MM-DD (UTC). */
  readonly groups: readonly string[]
  readonly requests: number
  readonly errors: number
  readonly inputTokens: number
  readonly outputTokens: number
  readonly costMicros: Micros
}

/** Sums over the calls of one parent (a batch). */
export interface ChildCalls {
  readonly open: number
  /** Sum over settled calls. */
  readonly costMicros: Micros
}

/** Behind `rakit ledger`: reads one snapshot of the whole ledger, beside a running server. */
export interface Ledger {
  readonly verify: Effect.Effect<LedgerProof, PortError>
  report(query: {
    readonly groupBy: readonly ReportGroup[]
    readonly fromMs: number
    readonly toMs: number
    readonly account?: string
  }): Effect.Effect<readonly ReportRow[], PortError>
  /** A parent without calls is missing. */
  children(parents: readonly string[]): Effect.Effect<ReadonlyMap<string, ChildCalls>, PortError>
}
