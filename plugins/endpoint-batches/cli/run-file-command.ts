import { Cause, Effect, Exit, Option } from "effect"
import { systemClock } from "../../../core/services/clock.ts"
import type { Log } from "../../../core/services/log.ts"
import { resolve, Tokens } from "../../../core/tokens.ts"
import { type BatchFileSums, loadBatchRunner } from "../../index.ts"
import type { AssembledDeployment } from "../../../runtime/boot/assemble.ts"
import { makeLog } from "../../../runtime/services/log.ts"
import { openEngineRoom, openPulled } from "../../../runtime/cli/offline.ts"
import { makeBatchProgress } from "./progress-view.ts"
import {
  type BatchOptions,
  type BatchRunReport,
  interruptedText,
  pathsOf,
  refusalText,
  reportJson,
  reportText,
  resumeCommand,
} from "./run-report.ts"
import { reasonOf, refuse } from "../../../runtime/cli/refuse.ts"
import { onStopSignal } from "../../../runtime/cli/signals.ts"

const targetsOf = ({ endpoints }: AssembledDeployment) =>
  new Map(
    endpoints.filter(({ batchable }) => batchable).map((endpoint) => [endpoint.path, endpoint]),
  )

/** Beside that of the engine, which batches what comes at once. */
const running = (
  input: string,
  config: string,
  options: BatchOptions,
  log: Log,
  onProgress: (sums: BatchFileSums) => void,
) =>
  Effect.scoped(
    Effect.gen(function* () {
      const { makeBatchRunner } = yield* Effect.promise(loadBatchRunner)
      const deployment = yield* openEngineRoom(config, log)
      const { container, settings } = deployment
      const run = makeBatchRunner({
        callPath: resolve(container, Tokens.callPath),
        catalogue: resolve(container, Tokens.catalogue),
        clock: resolve(container, Tokens.clock),
        random: Math.random,
        targets: targetsOf(deployment),
        settings: settings.get("endpoint-batches"),
      })
      const paths = pathsOf(input, options)
      let startedMs = systemClock.monotonicMs()
      const open = (models: readonly string[]) =>
        Effect.map(openPulled(deployment, models), () => {
          startedMs = systemClock.monotonicMs()
        })
      const sums = yield* run({
        ...paths,
        endpoint: options.endpoint,
        linesAtOnce: options.concurrency,
        resume: options.resume,
        open,
        onProgress,
      })
      return {
        paths,
        sums,
        seconds: (systemClock.monotonicMs() - startedMs) / 1000,
      } satisfies BatchRunReport
    }),
  )

const isRefusal = (error: unknown): error is Parameters<typeof refusalText>[0] =>
  (error as { readonly _tag?: string } | undefined)?._tag === "BatchFileRefused"

const fail = (exit: Exit.Failure<unknown, unknown>): never => {
  const error = Option.getOrUndefined(Cause.findErrorOption(exit.cause))
  if (!isRefusal(error)) return refuse(reasonOf(exit))
  process.stderr.write(refusalText(error))
  process.exit(1)
}

/** `config` as it was typed. Exits with 1 when lines failed or nothing ran, and as a signal does when one came. */
export const runBatch = async (
  input: string,
  config: { readonly file: string; readonly typed: string | undefined },
  options: BatchOptions,
): Promise<void> => {
  const stop = new AbortController()
  let signal = ""
  let sums: BatchFileSums | undefined
  const progress = makeBatchProgress(process.stderr, systemClock)
  onStopSignal((name) => {
    signal = name
    progress.write(`${name}: ending; once more ends at once\n`)
    stop.abort()
  })
  const log = makeLog({ level: "warn", destination: { write: progress.write } })
  const onProgress = (now: BatchFileSums) => {
    sums = now
    progress.report(now)
  }
  const exit = await Effect.runPromiseExit(running(input, config.file, options, log, onProgress), {
    signal: stop.signal,
  })
  progress.stop()
  if (Exit.isSuccess(exit)) {
    process.stdout.write(options.json ? reportJson(exit.value) : reportText(exit.value))
    if (exit.value.sums.failed > 0) process.exitCode = 1
    return
  }
  if (signal === "") return fail(exit)
  process.stderr.write(interruptedText(sums, resumeCommand(input, config.typed, options)))
  process.exit(signal === "SIGINT" ? 130 : 143)
}
