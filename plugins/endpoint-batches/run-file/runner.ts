import { stat } from "node:fs/promises"
import { resolve } from "node:path"
import { Effect, Schema, type Scope } from "effect"
import { limitsOf, Settings } from "../settings.ts"
import { type Earlier, readEarlier, sizeOf } from "./earlier.ts"
import type { BatchFileJob, BatchFileSums, BatchRunner, BatchRunnerDeps } from "./job.ts"
import { BatchFileRefused, notRegular, onFile, refused } from "./refused.ts"
import { openResultFiles } from "./result-files.ts"
import { makeResume } from "./resume.ts"
import { type LocalRun, runAll } from "./run-all.ts"
import { surveyFile, targetOf } from "./survey.ts"

const distinct = ({ input, output, errors }: BatchFileJob<unknown>) =>
  new Set([input, output, errors].map((path) => resolve(path))).size === 3
    ? Effect.void
    : Effect.fail(refused("Input, output and errors must be three files."))

/** Refuses standard input and output, which other tools call "-". */
const named = ({ input, output, errors }: BatchFileJob<unknown>) =>
  [input, output, errors].some((path) => path === "" || path === "-")
    ? Effect.fail(
        refused(
          "Input, output and errors must be files with a name: a run goes on from them where it was interrupted.",
        ),
      )
    : Effect.void

const mustBeFile = (path: string): Effect.Effect<void, BatchFileRefused> =>
  Effect.flatMap(
    onFile(path, "read", () => stat(path)),
    (found) => (found.isFile() ? Effect.void : Effect.fail(notRegular(path, found))),
  )

/** Without --resume nothing is overwritten. */
const earlierIn = (path: string, isResumed: boolean): Effect.Effect<Earlier, BatchFileRefused> =>
  Effect.gen(function* () {
    if (isResumed) return yield* readEarlier(path)
    if (yield* sizeOf(path))
      return yield* refused(
        `${path} is there already. Go on with it (--resume), name another file, or remove it.`,
      )
    return { path, ids: [], ends: [] }
  })

const runFile = <E>(
  run: LocalRun,
  job: BatchFileJob<E>,
): Effect.Effect<BatchFileSums, BatchFileRefused | E, Scope.Scope> =>
  Effect.gen(function* () {
    yield* named(job)
    yield* distinct(job)
    yield* mustBeFile(job.input)
    const target = yield* targetOf(run, job.input, job.endpoint)
    const resume = makeResume(
      yield* earlierIn(job.output, job.resume),
      yield* earlierIn(job.errors, job.resume),
    )
    const survey = yield* surveyFile(run, job.input, target, resume.pass)
    const found = resume.result()
    if (found instanceof BatchFileRefused) return yield* found
    const { completed, failed } = found
    const sums = {
      lines: survey.lines,
      earlier: completed + failed,
      completed,
      failed,
      inputTokens: 0,
      outputTokens: 0,
      costMicros: 0n,
    }
    if (found.next) yield* job.open(survey.models)
    const files = yield* openResultFiles(
      { path: job.output, bytes: found.outputBytes },
      { path: job.errors, bytes: found.errorBytes },
      run.clock,
    )
    job.onProgress(sums)
    return yield* runAll(run, job, target, found, files, sums)
  })

const defaults = Schema.decodeUnknownSync(Settings)({})

/**
 * Runs a file of lines on this machine, through the same call path as a batch, with neither a
 * server nor a database.
 */
export const makeBatchRunner = (deps: BatchRunnerDeps): BatchRunner => {
  const limits = limitsOf((deps.settings as Settings | undefined) ?? defaults)
  return (job) => runFile({ ...deps, limits, maxLineBytes: limits.maxLineBytes }, job)
}
