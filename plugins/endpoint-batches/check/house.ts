import type { Ledger } from "../../../core/index.ts"
import type { BatchHouse } from "../house.ts"

/** What the checks work with. */
export interface CheckHouse extends BatchHouse {
  /** Not every deployment keeps one. */
  readonly ledger: () => Ledger | undefined
}
