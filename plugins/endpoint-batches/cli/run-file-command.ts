import { Cause, Effect, Exit, Option } from "effect"
import type {
  CommandHost,
  Endpoint,
  OfflineDeployment,
  RunCommand,
  TypedCommand,
} from "../../../core/index.ts"
import type { BatchFileSums } from "../run-file/job.ts"
import { BatchFileRefused } from "../run-file/refused.ts"
import { makeBatchRunner } from "../run-file/runner.ts"
import { makeProgressView } from "./progress-view.ts"
import {
  type BatchRunReport,
  interruptedText,
  pathsOf,
  type RunOptions,
  refusalText,
  reportJson,
  reportText,
  resumeCommand,
} from "./run-report.ts"

const targetsOf = ({ endpoints }: OfflineDeployment): ReadonlyMap<string, Endpoint> =>
  new Map(
    endpoints.filter(({ batchable }) => batchable).map((endpoint) => [endpoint.path, endpoint]),
  )

/** The report measures time from when the models are open. */
const runFile = (
  input: string,
  configFile: string,
  options: RunOptions,
  { clock, openOffline }: CommandHost,
  writeLog: (lines: string) => void,
  onProgress: (sums: BatchFileSums) => void,
): Effect.Effect<BatchRunReport, Error> =>
  Effect.scoped(
    Effect.gen(function* () {
      const deployment = yield* openOffline(configFile, writeLog)
      const run = makeBatchRunner({
        callPath: deployment.callPath,
        catalogue: deployment.catalogue,
        clock,
        random: Math.random,
        targets: targetsOf(deployment),
        settings: deployment.settingsOf("endpoint-batches"),
      })
      const paths = pathsOf(input, options)
      let startedMs = clock.monotonicMs()
      const sums = yield* run({
        ...paths,
        endpoint: options.endpoint,
        linesAtOnce: options.concurrency,
        resume: options.resume === true,
        open: (models) =>
          Effect.map(deployment.openModels(models), () => {
            startedMs = clock.monotonicMs()
          }),
        onProgress,
      })
      return { paths, sums, seconds: (clock.monotonicMs() - startedMs) / 1000 }
    }),
  )

const errorOf = ({ cause }: Exit.Failure<unknown, Error>): Error => {
  const error = Option.getOrUndefined(Cause.findErrorOption(cause))
  if (error instanceof BatchFileRefused) return new Error(refusalText(error))
  return error ?? new Error(Cause.pretty(cause))
}

/** Exits with 1 when lines failed or nothing ran, and as a signal does when one came. */
export const runFileCommand: RunCommand = async (typed: TypedCommand, host: CommandHost) => {
  const [input = ""] = typed.arguments
  const options = typed.options as RunOptions
  const { file, isTyped } = typed.config
  const abort = new AbortController()
  let signal = ""
  let sums: BatchFileSums | undefined
  const progress = makeProgressView(process.stderr, host.clock)
  host.onStopSignal((name) => {
    signal = name
    progress.write(`${name}: ending; once more ends at once\n`)
    abort.abort()
  })
  const onProgress = (now: BatchFileSums) => {
    sums = now
    progress.report(now)
  }
  const running = runFile(input, file, options, host, progress.write, onProgress)
  const exit = await Effect.runPromiseExit(running, { signal: abort.signal })
  progress.stop()
  if (Exit.isSuccess(exit)) {
    process.stdout.write(options.json ? reportJson(exit.value) : reportText(exit.value))
    if (exit.value.sums.failed > 0) process.exitCode = 1
    return
  }
  if (signal === "") throw errorOf(exit)
  const goOn = resumeCommand(input, isTyped ? file : undefined, options)
  process.stderr.write(interruptedText(sums, goOn))
  process.exit(signal === "SIGINT" ? 130 : 143)
}
