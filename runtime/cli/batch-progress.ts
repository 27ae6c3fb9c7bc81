import { Presets, SingleBar } from "cli-progress"
import { formatRupiah } from "../../core/money.ts"
import type { Clock } from "../../core/services/clock.ts"
import type { BatchFileSums } from "../../plugins/index.ts"
import { timeLeft } from "../progress.ts"

/** Shows a run: as a bar on a terminal, else as a line every few seconds. */
export interface BatchProgressView {
  report(sums: BatchFileSums): void
  /** Whole lines for the same stream, as those of the log. */
  write(text: string): void
  /** Leaves the terminal as it was. */
  stop(): void
}

const rateWindowMs = 15_000
const sampleMs = 250
const plainPauseMs = 5_000
const barWidth = 24

interface Sample {
  readonly atMs: number
  readonly lines: number
  readonly tokens: number
}

const doneOf = ({ completed, failed }: BatchFileSums): number => completed + failed

const count = (n: number): string => Math.round(n).toLocaleString("en")
export const perSecond = (n: number): string => (n < 10 ? n.toFixed(1) : count(n))

/** "1,200 / 50,000 lines  2 failed  41 lines/s  5,120 tokens/s  Rp12.5  20 min left", as far as it is known. */
const lineOf = (sums: BatchFileSums, samples: readonly Sample[], bar = ""): string => {
  const done = doneOf(sums)
  const [first] = samples
  const last = samples.at(-1)
  const seconds = first && last ? (last.atMs - first.atMs) / 1000 : 0
  const rate = first && last && seconds > 0.2 ? { lines: (last.lines - first.lines) / seconds, tokens: (last.tokens - first.tokens) / seconds } : undefined
  return [
    `${bar}${count(done)} / ${count(sums.lines)} lines`,
    ...(sums.failed > 0 ? [`${count(sums.failed)} failed`] : []),
    ...(rate ? [`${perSecond(rate.lines)} lines/s`, `${perSecond(rate.tokens)} tokens/s`] : []),
    `Rp${formatRupiah(sums.costMicros)}`,
    ...(rate && rate.lines > 0 && done < sums.lines ? [timeLeft((sums.lines - done) / rate.lines)] : []),
  ].join("  ")
}

type Painter = Pick<BatchProgressView, "write" | "stop"> & { paint(line: (bar?: string) => string, done: number, total: number): void }

const makeLines = (out: NodeJS.WriteStream, clock: Clock): Painter => {
  let toldMs: number | undefined
  let told = -1
  return {
    paint: (line, done, total) => {
      const nowMs = clock.monotonicMs()
      const isDue = toldMs === undefined || nowMs - toldMs >= plainPauseMs || done === total
      if (!isDue || done === told) return
      toldMs = nowMs
      told = done
      out.write(`${line()}\n`)
    },
    write: (text) => void out.write(text),
    stop: () => {},
  }
}

const makeBar = (out: NodeJS.WriteStream): Painter => {
  let bar: SingleBar | undefined
  let line = (_?: string) => ""
  const stop = () => {
    bar?.stop()
    bar = undefined
  }
  const start = (total: number) => {
    const format: (options: { barCompleteString?: string; barIncompleteString?: string }, params: { value: number; total: number; maxWidth: number }) => string = (
      options,
      { value, total: all, maxWidth },
    ) => {
      const filled = Math.round(Math.min(1, all > 0 ? value / all : 1) * barWidth)
      return line(`${(options.barCompleteString ?? "").slice(0, filled)}${(options.barIncompleteString ?? "").slice(0, barWidth - filled)}  `).slice(0, maxWidth)
    }
    // signals are the command's own affair
    const made = new SingleBar({ stream: out, fps: 10, gracefulExit: false, format }, Presets.shades_classic)
    made.start(total, 0)
    return made
  }
  return {
    paint: (next, done, total) => {
      line = next
      bar ??= start(total)
      bar.update(done)
    },
    // the bar stands still while others write, and is drawn anew below
    write: (text) => {
      stop()
      out.write(text)
    },
    stop,
  }
}

export const makeBatchProgress = (out: NodeJS.WriteStream, clock: Clock): BatchProgressView => {
  const painter = out.isTTY ? makeBar(out) : makeLines(out, clock)
  const samples: Sample[] = []
  return {
    report: (sums) => {
      const atMs = clock.monotonicMs()
      if (samples.length > 1 && atMs - (samples.at(-2)?.atMs ?? atMs) < sampleMs) samples.pop()
      samples.push({ atMs, lines: doneOf(sums), tokens: sums.inputTokens + sums.outputTokens })
      while (samples.length > 2 && atMs - (samples[1]?.atMs ?? atMs) > rateWindowMs) samples.shift()
      painter.paint((bar) => lineOf(sums, samples, bar), doneOf(sums), sums.lines)
    },
    write: painter.write,
    stop: painter.stop,
  }
}
