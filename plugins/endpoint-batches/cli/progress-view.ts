import { Presets, SingleBar } from "cli-progress"
import { type Clock, displayRupiah, timeLeft } from "../../../core/index.ts"
import type { BatchFileSums } from "../run-file/job.ts"

/** Shows the progress of a run: on a terminal as a bar, elsewhere as a line every few seconds. */
export interface ProgressView {
  report(sums: BatchFileSums): void
  /** Writes whole lines to the same stream without tearing the bar. */
  write(text: string): void
  /** Restores the terminal. */
  stop(): void
}

const rateWindowMs = 15_000
const sampleMs = 250
const plainPauseMs = 5_000
const barWidth = 24
const leastBarWidth = 6
/** A running sum of a rupiah or more is shown in hundredths. */

interface Sample {
  readonly atMs: number
  readonly lines: number
  readonly tokens: number
}

const doneOf = ({ completed, failed }: BatchFileSums): number => completed + failed

const count = (n: number): string => Math.round(n).toLocaleString("en")
export const perSecond = (n: number): string => (n < 10 ? n.toFixed(1) : count(n))

interface Part {
  readonly text: string
  /** On a narrow terminal, parts of the lowest rank are dropped first. */
  readonly rank: number
}

/** "1,200 / 50,000 lines  2 failed  41 lines/s  5,120 tokens/s  Rp 12.50  20 min left"; what is not known yet is missing. */
const partsOf = (sums: BatchFileSums, samples: readonly Sample[]): readonly Part[] => {
  const done = doneOf(sums)
  const [first] = samples
  const last = samples.at(-1)
  const seconds = first && last ? (last.atMs - first.atMs) / 1000 : 0
  const rate =
    first && last && seconds > 0.2
      ? {
          lines: (last.lines - first.lines) / seconds,
          tokens: (last.tokens - first.tokens) / seconds,
        }
      : undefined
  return [
    { text: `${count(done)} / ${count(sums.lines)} lines`, rank: 6 },
    ...(sums.failed > 0 ? [{ text: `${count(sums.failed)} failed`, rank: 3 }] : []),
    ...(rate
      ? [
          { text: `${perSecond(rate.lines)} lines/s`, rank: 4 },
          { text: `${perSecond(rate.tokens)} tokens/s`, rank: 1 },
        ]
      : []),
    {
      text: displayRupiah(sums.costMicros),
      rank: 2,
    },
    ...(rate && rate.lines > 0 && done < sums.lines
      ? [{ text: timeLeft((sums.lines - done) / rate.lines), rank: 5 }]
      : []),
  ]
}

const textOf = (parts: readonly Part[]): string => parts.map(({ text }) => text).join("  ")

/** Drops parts until the text fits. */
const fitting = (parts: readonly Part[], width: number): string => {
  if (parts.length === 1 || textOf(parts).length <= width) return textOf(parts).slice(0, width)
  const lowest = Math.min(...parts.map(({ rank }) => rank))
  return fitting(
    parts.filter(({ rank }) => rank > lowest),
    width,
  )
}

type Painter = Pick<ProgressView, "write" | "stop"> & {
  paint(parts: readonly Part[], done: number, total: number): void
}

const makeLines = (out: NodeJS.WriteStream, clock: Clock): Painter => {
  let shownMs: number | undefined
  let shown = -1
  return {
    paint: (parts, done, total) => {
      const nowMs = clock.monotonicMs()
      const isDue = shownMs === undefined || nowMs - shownMs >= plainPauseMs || done === total
      if (!isDue || done === shown) return
      shownMs = nowMs
      shown = done
      out.write(`${textOf(parts)}\n`)
    },
    write: (text) => void out.write(text),
    stop: () => {},
  }
}

const makeBar = (out: NodeJS.WriteStream): Painter => {
  let bar: SingleBar | undefined
  let parts: readonly Part[] = []
  const stop = () => {
    bar?.stop()
    bar = undefined
  }
  const start = (total: number) => {
    const format: (
      options: { barCompleteString?: string; barIncompleteString?: string },
      params: { value: number; total: number; maxWidth: number },
    ) => string = (options, { value, total: all, maxWidth }) => {
      const text = fitting(parts, maxWidth)
      const width = Math.min(barWidth, maxWidth - text.length - 2)
      if (width < leastBarWidth) return text
      const filled = Math.round(Math.min(1, all > 0 ? value / all : 1) * width)
      return `${(options.barCompleteString ?? "").slice(0, filled)}${(options.barIncompleteString ?? "").slice(0, width - filled)}  ${text}`
    }
    // the command handles signals itself
    const made = new SingleBar(
      { stream: out, fps: 10, gracefulExit: false, format },
      Presets.shades_classic,
    )
    made.start(total, 0)
    return made
  }
  return {
    paint: (next, done, total) => {
      parts = next
      bar ??= start(total)
      bar.update(done)
    },
    // the bar stays above what others write, and is drawn again below it
    write: (text) => {
      stop()
      out.write(text)
    },
    stop,
  }
}

export const makeProgressView = (out: NodeJS.WriteStream, clock: Clock): ProgressView => {
  const painter = out.isTTY ? makeBar(out) : makeLines(out, clock)
  const samples: Sample[] = []
  return {
    report: (sums) => {
      const atMs = clock.monotonicMs()
      if (samples.length > 1 && atMs - (samples.at(-2)?.atMs ?? atMs) < sampleMs) samples.pop()
      samples.push({ atMs, lines: doneOf(sums), tokens: sums.inputTokens + sums.outputTokens })
      while (samples.length > 2 && atMs - (samples[1]?.atMs ?? atMs) > rateWindowMs) samples.shift()
      painter.paint(partsOf(sums, samples), doneOf(sums), sums.lines)
    },
    write: painter.write,
    stop: painter.stop,
  }
}
