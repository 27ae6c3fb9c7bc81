import type { Effect } from "effect"
import type { Ledger } from "../../core/ports/ledger.ts"
import { systemClock } from "../../core/services/clock.ts"
import { Tokens } from "../../core/tokens.ts"
import { proofText, reportCsv, reportJson, reportTable } from "./ledger-text.ts"
import { refuse } from "./refuse.ts"
import { type ReportWords, readReportQuery } from "./report-query.ts"
import { withProvider } from "./with-deployment.ts"

const withLedger = <A, E>(
  config: string,
  work: (ledger: Ledger) => Effect.Effect<A, E>,
): Promise<A> => withProvider(config, Tokens.ledger, "keeps a ledger", work)

export interface VerifyOptions {
  readonly config: string
  readonly json: boolean
}

/** Exits with 1 when an invariant is broken. */
export const verifyLedger = async ({ config, json }: VerifyOptions): Promise<void> => {
  const proof = await withLedger(config, (ledger) => ledger.verify)
  const sound = proof.faults.length === 0
  process.stdout.write(json ? `${JSON.stringify({ sound, ...proof })}\n` : proofText(proof))
  if (!sound) process.exitCode = 1
}

export interface ReportOptions extends ReportWords {
  readonly config: string
}

/** Reads the options before anything starts. */
const readOrRefuse = (options: ReportOptions) => {
  try {
    return readReportQuery(options, systemClock.nowMs())
  } catch (error) {
    return refuse(error)
  }
}

export const reportLedger = async (options: ReportOptions): Promise<void> => {
  const query = readOrRefuse(options)
  const { groupBy } = query
  const rows = await withLedger(options.config, (ledger) => ledger.report(query))
  const format = options.json ? reportJson : options.csv ? reportCsv : reportTable
  process.stdout.write(format(groupBy, rows))
}
