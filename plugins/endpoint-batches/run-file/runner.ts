import { stat } from "node:fs/promises"
import { basename, resolve } from "node:path"
import { Effect, Schema, type Scope, Stream } from "effect"
import type { Clock, Endpoint, Micros, ModelId } from "../../../core/index.ts"
import { isBatchError, readInputLine } from "../input/input-line.ts"
import { jsonLines, type RawLine } from "../input/json-lines.ts"
import { type BatchLimits, limitsOf, Settings } from "../settings.ts"
import { copiesInMemory } from "../work/line-run.ts"
import { makeLineScheduler } from "../work/line-scheduler.ts"
import { type Earlier, readEarlier, sizeOf } from "./earlier.ts"
import { fileBytes } from "./file-bytes.ts"
import { makeInOrder } from "./in-order.ts"
import { type LocalResult, runLocalLine } from "./local-line.ts"
import { BatchFileRefused, notRegular, onFile, refused } from "./refused.ts"
import { openResultFiles, type ResultFiles } from "./result-files.ts"
import { makeResume, type Resumption } from "./resume.ts"
import { type SurveyDeps, surveyFile, targetOf } from "./survey.ts"

/** The progress of a run. Tokens and cost are those of this run; lines include those of earlier runs. */
export interface BatchFileSums {
  readonly lines: number
  /** Lines that had a result before this run. */
  readonly earlier: number
  readonly completed: number
  readonly failed: number
  readonly inputTokens: number
  readonly outputTokens: number
  /** At the price of a batch; nobody pays it. */
  readonly costMicros: Micros
}

export interface BatchFileJob<E> {
  readonly input: string
  readonly output: string
  readonly errors: string
  /** That of the first line by default. */
  readonly endpoint?: string | undefined
  /** That of the plugin's settings by default. */
  readonly linesAtOnce?: number | undefined
  /** Go on where an earlier run of the same file ended; otherwise the two files must not exist. */
  readonly resume: boolean
  /** Opens the models that the file names, after its pre-flight. */
  open(models: readonly ModelId[]): Effect.Effect<void, E, Scope.Scope>
  onProgress(sums: BatchFileSums): void
}

export interface BatchRunnerDeps extends Omit<SurveyDeps, "maxLineBytes"> {
  readonly clock: Clock
  readonly random: () => number
  /** The settings of the plugin, where the deployment has it. */
  readonly settings?: unknown
}

/** Runs a file. The Scope closes its files. */
export type BatchRunner = <E>(
  job: BatchFileJob<E>,
) => Effect.Effect<BatchFileSums, BatchFileRefused | E, Scope.Scope>

type Run = BatchRunnerDeps & SurveyDeps & { readonly limits: BatchLimits }

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

interface Pending {
  /** From 0 on. */
  readonly number: number
  readonly raw: RawLine
}

const pendingLines = (
  run: Run,
  input: string,
  { line, offset }: NonNullable<Resumption["next"]>,
) => {
  let number = 0
  return Stream.map(
    jsonLines(fileBytes(input, offset), { ...run, from: { line, offset } }),
    (raw): Pending => ({ number: number++, raw }),
  )
}

/** Results in any order; the scheduler limits how many lines run at once, and their memory. */
const results = (
  run: Run,
  job: BatchFileJob<unknown>,
  target: Endpoint,
  next: NonNullable<Resumption["next"]>,
) => {
  const { linesAtOnce = run.limits.linesAtOnce } = job
  const scheduler = makeLineScheduler(linesAtOnce, run.limits.memoryBytes)
  const lineDeps = { ...run, target, name: basename(job.input) }
  const runOne = ({ number, raw }: Pending) =>
    Effect.gen(function* () {
      const line = readInputLine(raw, target.path)
      if (isBatchError(line))
        return yield* refused(
          `${job.input} was changed while it ran: line ${raw.line}: ${line.message}`,
        )
      const permit = yield* scheduler.acquire("", (raw.end - raw.offset) * copiesInMemory)
      const result = yield* runLocalLine(lineDeps, raw.line, line)
      permit.answered(result.text.length * copiesInMemory)
      return { number, result, permit }
    })
  return Stream.mapEffect(pendingLines(run, job.input, next), runOne, {
    concurrency: linesAtOnce,
    unordered: true,
  })
}

const plus = (
  sums: BatchFileSums,
  { isOk, inputTokens, outputTokens, costMicros }: LocalResult,
): BatchFileSums => ({
  ...sums,
  completed: sums.completed + (isOk ? 1 : 0),
  failed: sums.failed + (isOk ? 0 : 1),
  inputTokens: sums.inputTokens + inputTokens,
  outputTokens: sums.outputTokens + outputTokens,
  costMicros: sums.costMicros + costMicros,
})

const runAll = (
  run: Run,
  job: BatchFileJob<unknown>,
  target: Endpoint,
  found: Resumption,
  files: ResultFiles,
  before: BatchFileSums,
) =>
  Effect.gen(function* () {
    let sums = before
    if (found.next) {
      const inOrder = makeInOrder<{ readonly result: LocalResult; release(): void }>()
      yield* Stream.runForEach(
        results(run, job, target, found.next),
        ({ number, result, permit }) =>
          Effect.gen(function* () {
            const ready = inOrder.put(number, { result, release: permit.release })
            const texts = (isOk: boolean) =>
              ready.filter((one) => one.result.isOk === isOk).map((one) => one.result.text)
            yield* files.append(texts(true), texts(false))
            for (const { result: one, release } of ready) {
              sums = plus(sums, one)
              release()
            }
            if (ready.length > 0) job.onProgress(sums)
          }),
      )
    }
    yield* files.sync
    return sums
  })

const runFile = <E>(
  run: Run,
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

/** Runs a file of lines on this machine, through the same call path as a batch, with neither a server nor a database. */
export const makeBatchRunner = (deps: BatchRunnerDeps): BatchRunner => {
  const limits = limitsOf((deps.settings as Settings | undefined) ?? defaults)
  return (job) => runFile({ ...deps, limits, maxLineBytes: limits.maxLineBytes }, job)
}
