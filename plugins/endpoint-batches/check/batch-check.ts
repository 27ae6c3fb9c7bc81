import { Effect } from "effect"
import { type ConsistencyCheck, type Finding, inPages, type PortError } from "../../../core/index.ts"
import { batchPage, type CheckedBatch } from "./batch-rows.ts"
import { checkEnded } from "./ended.ts"
import type { CheckHouse } from "./house.ts"
import { checkMoney } from "./money.ts"
import { checkRunning } from "./running.ts"

const checkOne = (house: CheckHouse, row: CheckedBatch): Effect.Effect<readonly Finding[], PortError> => {
  if (row.ended_at !== null) return checkEnded(house, row)
  return row.status === "in_progress" ? checkRunning(house, row) : Effect.succeed([])
}

export const batchCheck = (house: CheckHouse): ConsistencyCheck => ({
  name: "batches",
  about: "counters, parts and files of each batch hold each answered line once, in order, and it cost what the ledger has charged",
  findings: (looked) => {
    const judge = (rows: readonly CheckedBatch[]) =>
      Effect.gen(function* () {
        const found = [...(yield* checkMoney(house, rows))]
        for (const row of rows) {
          found.push(...(yield* checkOne(house, row)))
          looked(1)
        }
        return found
      })
    return inPages({ page: batchPage(house), judge }, () => {})
  },
})
