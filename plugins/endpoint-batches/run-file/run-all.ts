import { basename } from "node:path"
import { Effect, Stream } from "effect"
import type { Endpoint } from "../../../core/index.ts"
import { isBatchError, readInputLine } from "../input/input-line.ts"
import { jsonLines, type RawLine } from "../input/json-lines.ts"
import type { BatchLimits } from "../settings.ts"
import { copiesInMemory } from "../work/line-run.ts"
import { makeLineScheduler } from "../work/line-scheduler.ts"
import { fileBytes } from "./file-bytes.ts"
import type { BatchFileJob, BatchFileSums, BatchRunnerDeps } from "./job.ts"
import { type LocalResult, runLocalLine } from "./local-line.ts"
import { refused } from "./refused.ts"
import type { ResultFiles } from "./result-files.ts"
import type { Resumption } from "./resume.ts"
import type { SurveyDeps } from "./survey.ts"

/** The dependencies of a run. */
export type LocalRun = BatchRunnerDeps & SurveyDeps & { readonly limits: BatchLimits }

/** A reorder buffer: items come in any order, and go out in order of their numbers. */
const makeReorderBuffer = <A>() => {
  const waiting = new Map<number, A>()
  let next = 0
  return {
    /** Adds the item with this number, from 0 on. Returns the items that are next. */
    put: (number: number, item: A): readonly A[] => {
      waiting.set(number, item)
      const ready: A[] = []
      for (let first = waiting.get(next); first !== undefined; first = waiting.get(next)) {
        waiting.delete(next)
        ready.push(first)
        next += 1
      }
      return ready
    },
  }
}

interface Pending {
  /** Counts the pending lines from 0. */
  readonly number: number
  readonly raw: RawLine
}

const pendingLines = (
  run: LocalRun,
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
  run: LocalRun,
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

/** Runs the lines that have no result, and appends the results in order. */
export const runAll = (
  run: LocalRun,
  job: BatchFileJob<unknown>,
  target: Endpoint,
  found: Resumption,
  files: ResultFiles,
  before: BatchFileSums,
) =>
  Effect.gen(function* () {
    let sums = before
    if (found.next) {
      const reorder = makeReorderBuffer<{ readonly result: LocalResult; release(): void }>()
      yield* Stream.runForEach(
        results(run, job, target, found.next),
        ({ number, result, permit }) =>
          Effect.gen(function* () {
            const ready = reorder.put(number, { result, release: permit.release })
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
