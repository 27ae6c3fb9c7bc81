import { Effect } from "effect"
import { systemClock } from "../../core/services/clock.ts"
import { resolveAll, type Token, Tokens } from "../../core/tokens.ts"
import { makeProgress } from "./fsck-progress.ts"
import { type CheckReport, isClean, runCheck } from "./fsck-run.ts"
import { checkText, reportsJson, summaryText } from "./fsck-text.ts"
import { withStarted } from "./with-house.ts"

export interface FsckOptions {
  readonly mend: boolean
  readonly json: boolean
}

/** All checks of all plugins, one after the other. Exits with 1 when something is left that does not agree. */
export const fsck = async (file: string, { mend, json }: FsckOptions): Promise<void> => {
  const progress = makeProgress(process.stderr, systemClock)
  const reports = await withStarted(
    file,
    () => [Tokens.consistencyChecks as Token<unknown>],
    ({ container }) =>
      Effect.gen(function* () {
        const done: CheckReport[] = []
        for (const check of resolveAll(container, Tokens.consistencyChecks)) {
          const report = yield* runCheck(check, mend, progress.report)
          progress.clear()
          done.push(report)
          if (!json) process.stdout.write(checkText(report))
        }
        return done
      }),
  )
  process.stdout.write(json ? reportsJson(reports) : summaryText(reports))
  if (!reports.every(isClean)) process.exitCode = 1
}
