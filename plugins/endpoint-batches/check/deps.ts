import type { Ledger } from "../../../core/index.ts"
import type { BatchDeps } from "../deps.ts"

/** What the checks work with. */
export interface CheckDeps extends BatchDeps {
  /** Not every deployment keeps one. */
  readonly ledger: () => Ledger | undefined
}
