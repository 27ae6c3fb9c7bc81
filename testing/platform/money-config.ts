import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"

const root = fileURLToPath(new URL("../..", import.meta.url))

export interface MoneyConfig {
  /** The free credit of the first account. */
  readonly freeCreditIdr: number
  /**
   * A replica without a heartbeat for this long is considered dead. The default is the ledger's.
   */
  readonly leaseMs?: number
  /** A reply leaves when its settlement is in the journal. */
  readonly journalFirst?: true
}

/** config/test.yaml with another credit and lease, in `folder`. Returns the path of the file. */
export const writeMoneyConfig = (
  folder: string,
  { freeCreditIdr, leaseMs, journalFirst }: MoneyConfig,
): string => {
  const third = Math.floor((leaseMs ?? 0) / 3)
  const ledger = JSON.stringify({
    ...(leaseMs !== undefined && { leaseMs, heartbeatMs: third, sweepMs: third }),
    ...(journalFirst && { replyAfter: "journal" }),
  })
  const text = readFileSync(join(root, "config/test.yaml"), "utf8")
    .replace("../testing/fakes/backend.ts", join(root, "testing/fakes/backend.ts"))
    .replace("  accounts:\n", `  accounts:\n    freeCreditIdr: ${freeCreditIdr}\n`)
    .replace("billing-ledger: {}", `billing-ledger: ${ledger}`)
  const file = join(folder, "money.yaml")
  writeFileSync(file, text)
  return file
}
