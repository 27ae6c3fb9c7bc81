import { Effect } from "effect"
import { systemClock } from "../../core/services/clock.ts"
import { resolveAll, type Token, Tokens } from "../../core/tokens.ts"
import { makeProgress } from "./fsck-progress.ts"
import { type CheckReport, isClean, runCheck } from "./fsck-run.ts"
import { checkText, reportsJson, summaryText } from "./fsck-text.ts"
import { mustHaveData, startWanted, withDeployment } from "./with-deployment.ts"

export interface FsckOptions {
  readonly repair: boolean
  readonly json: boolean
}

/** Runs the checks of all plugins, one after the other. Exits with 1 when a finding is left. */
export const fsck = async (file: string, { repair, json }: FsckOptions): Promise<void> => {
  const progress = makeProgress(process.stderr, systemClock)
  const reports = await withDeployment(file, (deployment) =>
    Effect.gen(function* () {
      const dataDir = yield* mustHaveData(deployment)
      yield* startWanted(deployment, [Tokens.consistencyChecks as Token<unknown>])
      if (!json)
        process.stdout.write(`The data of ${deployment.config.deployment.name} (${dataDir})\n`)
      const done: CheckReport[] = []
      for (const check of resolveAll(deployment.container, Tokens.consistencyChecks)) {
        const report = yield* runCheck(check, repair, progress.report)
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
