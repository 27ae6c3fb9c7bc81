import { displayRupiah, rupiahNumber } from "../../../core/index.ts"
import type { BatchFileSums } from "../run-file/job.ts"
import { perSecond } from "./progress-view.ts"

export interface RunOptions {
  readonly out?: string
  readonly errors?: string
  readonly endpoint?: string
  readonly concurrency?: number
  readonly resume?: boolean
  readonly json?: boolean
}

export interface BatchPaths {
  readonly input: string
  readonly output: string
  readonly errors: string
}

const withoutEnd = (path: string): string => path.replace(/(\.output)?\.jsonl$/, "")

/**
 * `a.jsonl` -> `a.output.jsonl` and `a.errors.jsonl`; with --out alone, the errors go beside it.
 */
export const pathsOf = (
  input: string,
  { out, errors }: Pick<RunOptions, "out" | "errors">,
): BatchPaths => ({
  input,
  output: out ?? `${input.replace(/\.jsonl$/, "")}.output.jsonl`,
  errors:
    errors ?? `${out === undefined ? input.replace(/\.jsonl$/, "") : withoutEnd(out)}.errors.jsonl`,
})

export interface BatchRunReport {
  readonly paths: BatchPaths
  readonly sums: BatchFileSums
  readonly seconds: number
}

const ratesOf = ({ sums, seconds }: BatchRunReport) => {
  const lines = sums.completed + sums.failed - sums.earlier
  const each = (n: number) => (seconds > 0 ? n / seconds : 0)
  return { lines: each(lines), tokens: each(sums.inputTokens + sums.outputTokens) }
}

const count = (n: number): string => n.toLocaleString("en")
const linesOf = (n: number): string => `${count(n)} line${n === 1 ? "" : "s"}`

export const reportText = (report: BatchRunReport): string => {
  const { paths, sums, seconds } = report
  const rates = ratesOf(report)
  return [
    `${linesOf(sums.lines)}: ${count(sums.completed)} completed, ${count(sums.failed)} failed${sums.earlier > 0 ? ` (${count(sums.earlier)} of them in an earlier run)` : ""}`,
    `${sums.earlier > 0 ? "This run: " : ""}${linesOf(sums.completed + sums.failed - sums.earlier)} in ${perSecond(seconds)} s, ${perSecond(rates.lines)} lines/s, ${perSecond(rates.tokens)} tokens/s (${count(sums.inputTokens)} in, ${count(sums.outputTokens)} out)`,
    `As lines of a customer's batch they would have cost ${displayRupiah(sums.costMicros)}.`,
    `output: ${paths.output}`,
    ...(sums.failed > 0 ? [`errors: ${paths.errors}`] : []),
    "",
  ].join("\n")
}

const rounded = (n: number): number => Math.round(n * 1000) / 1000

export const reportJson = (report: BatchRunReport): string => {
  const { paths, sums, seconds } = report
  const rates = ratesOf(report)
  return `${JSON.stringify({
    object: "batch_run",
    input: paths.input,
    output: paths.output,
    errors: sums.failed > 0 ? paths.errors : null,
    lines: sums.lines,
    completed: sums.completed,
    failed: sums.failed,
    earlier: sums.earlier,
    input_tokens: sums.inputTokens,
    output_tokens: sums.outputTokens,
    cost_idr: rupiahNumber(sums.costMicros),
    seconds: rounded(seconds),
    lines_per_second: rounded(rates.lines),
    tokens_per_second: rounded(rates.tokens),
  })}\n`
}

const shown = (word: string): string =>
  /^[\w./:@-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`

export const interruptedText = (sums: BatchFileSums | undefined, goOn: string): string =>
  sums === undefined
    ? "Interrupted before the first line\n"
    : `Interrupted after ${count(sums.completed + sums.failed)} of ${linesOf(sums.lines)}. Go on with: ${goOn}\n`

/** The command line that goes on with the run. */
export const resumeCommand = (
  input: string,
  config: string | undefined,
  { out, errors, endpoint, concurrency }: RunOptions,
): string =>
  [
    "rakit batch run",
    shown(input),
    ...(config === undefined ? [] : [shown(config)]),
    ...(out === undefined ? [] : ["--out", shown(out)]),
    ...(errors === undefined ? [] : ["--errors", shown(errors)]),
    ...(endpoint === undefined ? [] : ["--endpoint", shown(endpoint)]),
    ...(concurrency === undefined ? [] : ["--concurrency", String(concurrency)]),
    "--resume",
  ].join(" ")

interface Fault {
  readonly line: number | null
  readonly message: string
}

/** Why a file was refused: the reason, then one line for each fault. */
export const refusalText = ({
  message,
  faults = [],
}: {
  readonly message: string
  readonly faults?: readonly Fault[]
}): string =>
  [
    message,
    ...faults.map(
      ({ line, message: what }) => `  ${line === null ? "" : `line ${count(line)}: `}${what}`,
    ),
  ].join("\n")
