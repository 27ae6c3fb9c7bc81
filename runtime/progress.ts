import { MultiBar, type Options, Presets, type SingleBar } from "cli-progress"
import { type Clock, type ModelId, systemClock, timeLeft } from "../core/index.ts"
import type { PullProgress } from "./services/model-files/pull.ts"

/** Shows the pulls of several models at once: as bars on a terminal, otherwise as lines. */
export interface PullProgressView {
  /** The listener for `ModelFiles.pull`. */
  report(progress: PullProgress): void
  /** Ends a model's pull, whether it succeeded or not. Needed when the size was never known. */
  done(model: ModelId): void
  /** Writes whole lines to the same stream without breaking the bars: a destination for the log. */
  write(text: string): void
  /** Restores the terminal; a later report starts again. */
  stop(): void
}

const rateWindowMs = 5_000
const plainPauseMs = 10_000

/** A pull from one source, of all models that have it: they wait for the same bytes. */
interface Pull {
  /** Its line or bar goes on when the models turn to another source. */
  readonly id: number
  progress: PullProgress
  /** In the order in which they came. */
  readonly models: Set<ModelId>
  /** Those that wait no longer. */
  readonly ended: Set<ModelId>
  /** The last five seconds, oldest first. */
  readonly samples: { readonly atMs: number; readonly bytes: number }[]
}

const keepSample = ({ samples }: Pull, atMs: number, bytes: number): void => {
  samples.push({ atMs, bytes })
  while (samples.length > 2 && atMs - (samples[0]?.atMs ?? atMs) > rateWindowMs) samples.shift()
}

/** Bytes per second; undefined until there are enough samples. */
const rateOf = ({ samples }: Pull): number | undefined => {
  const first = samples[0]
  const last = samples.at(-1)
  if (!first || !last || last.atMs - first.atMs < 200 || last.bytes <= first.bytes) return undefined
  return ((last.bytes - first.bytes) * 1000) / (last.atMs - first.atMs)
}

const units = [
  { unit: "GB", bytes: 1e9 },
  { unit: "MB", bytes: 1e6 },
  { unit: "kB", bytes: 1e3 },
] as const

/** "42.1 / 98.2 MB", "42.1 MB", "512 B": in the unit of the last number. */
const amount = (...bytes: readonly number[]): string => {
  const largest = bytes.at(-1) ?? 0
  const scale = units.find((unit) => largest >= unit.bytes)
  return scale
    ? `${bytes.map((count) => (count / scale.bytes).toFixed(1)).join(" / ")} ${scale.unit}`
    : `${bytes.join(" / ")} B`
}

const percentOf = ({ doneBytes, totalBytes }: PullProgress): number =>
  totalBytes ? Math.min(100, Math.floor((doneBytes / totalBytes) * 100)) : 0
const isWhole = ({ doneBytes, totalBytes }: PullProgress): boolean => doneBytes === totalBytes

/** "svc-lyt  42.1 / 98.2 MB  43 %  11.3 MB/s  5 s left", as far as they are known. */
const lineOf = (pull: Pull, bar = ""): string => {
  const { doneBytes, totalBytes } = pull.progress
  const rate = rateOf(pull)
  return [
    `${[...pull.models].join(", ")}${bar}`,
    totalBytes === undefined ? amount(doneBytes) : amount(doneBytes, totalBytes),
    ...(totalBytes === undefined ? [] : [`${percentOf(pull.progress)} %`]),
    ...(rate === undefined ? [] : [`${amount(Math.round(rate))}/s`]),
    ...(rate === undefined || totalBytes === undefined || isWhole(pull.progress)
      ? []
      : [timeLeft((totalBytes - doneBytes) / rate)]),
  ].join("  ")
}

/** Draws the start, the steps and the end of a pull. */
interface Painter {
  start(pull: Pull): void
  step(pull: Pull): void
  end(pull: Pull): void
  write(text: string): void
  stop(): void
}

/**
 * Prints a line at the start, at every 10 % (every 10 s where the size is unknown) and at the end.
 */
const makeLines = (out: NodeJS.WriteStream, clock: Pick<Clock, "nowMs">): Painter => {
  const printed = new Map<number, { tenth: number; atMs: number }>()
  const tenthOf = ({ progress }: Pull) => Math.floor(percentOf(progress) / 10)
  const print = (pull: Pull, text = lineOf(pull)) => {
    printed.set(pull.id, { tenth: tenthOf(pull), atMs: clock.nowMs() })
    out.write(`${text}\n`)
  }
  return {
    start: (pull) => print(pull, `${lineOf(pull)}  from ${pull.progress.source}`),
    step: (pull) => {
      const last = printed.get(pull.id)
      const known = pull.progress.totalBytes !== undefined
      if (!last || (known ? tenthOf(pull) > last.tenth : clock.nowMs() - last.atMs >= plainPauseMs))
        print(pull)
    },
    end: (pull) => print(pull),
    write: (text) => out.write(text),
    stop: () => {},
  }
}

const barWidth = 24

const barOptions = (out: NodeJS.WriteStream): Options => ({
  stream: out,
  fps: 10,
  // a log line may have broken the bar
  forceRedraw: true,
  // false would also cut the log lines between the bars
  linewrap: true,
  // the server handles signals itself
  gracefulExit: false,
  format: (options, params, pull: Pull) => {
    const filled = Math.round(
      Math.min(1, params.total > 0 ? params.value / params.total : 0) * barWidth,
    )
    const bar =
      (options.barCompleteString ?? "").slice(0, filled) +
      (options.barIncompleteString ?? "").slice(0, barWidth - filled)
    return lineOf(pull, `  ${bar}`).slice(0, params.maxWidth)
  },
})

const makeBars = (out: NodeJS.WriteStream): Painter => {
  let multi: MultiBar | undefined
  const bars = new Map<number, SingleBar>()
  const stop = () => {
    multi?.stop()
    multi = undefined
    bars.clear()
  }
  const draw = (pull: Pull) => {
    const { doneBytes, totalBytes = 0 } = pull.progress
    multi ??= new MultiBar(barOptions(out), Presets.shades_classic)
    const bar = bars.get(pull.id) ?? multi.create(totalBytes, doneBytes, pull)
    bars.set(pull.id, bar)
    bar.setTotal(totalBytes)
    bar.update(doneBytes, pull)
  }
  return {
    start: draw,
    step: draw,
    end: draw,
    // erases the rest of the bar that was there
    write: (text) => {
      if (!multi) return void out.write(text)
      multi.log(text.replaceAll("\n", "\u001b[K\n"))
      multi.update()
    },
    stop,
  }
}

export const makePullProgress = (
  out: NodeJS.WriteStream,
  clock: Pick<Clock, "nowMs"> = systemClock,
): PullProgressView => {
  const painter = out.isTTY ? makeBars(out) : makeLines(out, clock)
  const running = new Set<Pull>()
  const finished = new Map<ModelId, string>()
  let lastId = 0
  const newPull = (progress: PullProgress): Pull => ({
    id: ++lastId,
    progress,
    models: new Set(),
    ended: new Set(),
    samples: [],
  })
  const pullWith = (is: (pull: Pull) => boolean) => [...running].find(is)
  const finish = (pull: Pull) => {
    painter.end(pull)
    running.delete(pull)
    for (const model of pull.models) finished.set(model, pull.progress.source)
    if (running.size === 0) painter.stop()
  }
  /** The pull that this report is of, and whether it goes on. */
  const pullOf = (progress: PullProgress): { readonly pull: Pull; readonly goesOn: boolean } => {
    const { model, source, doneBytes } = progress
    const same = pullWith((pull) => pull.progress.source === source)
    const before = pullWith(({ models }) => models.has(model))
    if (before && before !== same) {
      before.models.delete(model)
      if (before.models.size === 0) running.delete(before)
    }
    // the last one to leave a source takes the pull along
    const pull = same ?? (before?.models.size === 0 ? before : newPull(progress))
    pull.models.add(model)
    const goesOn = pull === same && pull.progress.doneBytes <= doneBytes
    if (!goesOn) {
      pull.ended.clear()
      pull.samples.length = 0
    }
    return { pull, goesOn }
  }
  const isKnownWhole = (progress: PullProgress) =>
    isWhole(progress) &&
    !pullWith((pull) => pull.progress.source === progress.source) &&
    [...finished.values()].includes(progress.source)
  return {
    report: (progress) => {
      if (isKnownWhole(progress)) return
      const { pull, goesOn } = pullOf(progress)
      pull.progress = progress
      keepSample(pull, clock.nowMs(), progress.doneBytes)
      running.add(pull)
      if (isWhole(progress)) finish(pull)
      else if (goesOn) painter.step(pull)
      else painter.start(pull)
    },
    done: (model) => {
      const pull = pullWith(({ models }) => models.has(model))
      pull?.ended.add(model)
      if (pull && pull.ended.size === pull.models.size) finish(pull)
    },
    write: (text) => painter.write(text),
    stop: () => {
      running.clear()
      painter.stop()
    },
  }
}
