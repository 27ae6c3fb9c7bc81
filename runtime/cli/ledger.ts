import { Effect } from "effect"
import type { Ledger } from "../../core/ports/ledger.ts"
import { systemClock } from "../../core/services/clock.ts"
import { resolve, type Token, Tokens } from "../../core/tokens.ts"
import { proofText, reportCsv, reportJson, reportTable } from "./ledger-text.ts"
import { refuse } from "./refuse.ts"
import { type ReportWords, readReportQuery } from "./report-query.ts"
import { withStarted } from "./with-deployment.ts"

const withLedger = <A, E>(
  config: string,
  work: (ledger: Ledger) => Effect.Effect<A, E>,
): Promise<A> =>
  withStarted(
    config,
    () => [Tokens.ledger as Token<unknown>],
    ({ container }) =>
      Effect.suspend((): Effect.Effect<A, E | Error> => {
        if (!container.isRegistered(Tokens.ledger.key, true))
          return Effect.fail(
            new Error(
              "No plugin of this deployment keeps a ledger. Fix: add the plugin billing-ledger.",
            ),
          )
        return work(resolve(container, Tokens.ledger))
      }),
  )

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

/** Before anything starts. */
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
