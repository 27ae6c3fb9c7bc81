import { median, percentile } from "../measure/rounds.ts"
import { figure, printTable, times } from "../measure/table.ts"
import { type HonestSamples, type HostileCounts, type Kind, kinds } from "./samples.ts"

export interface RssSample {
  readonly atMs: number
  readonly mb: number
}

const timesOf = ({ times }: HonestSamples, kind: Kind): readonly number[] =>
  times.filter(([one]) => one === kind).map(([, ms]) => ms)

const failuresOf = (all: readonly HonestSamples[]): Readonly<Record<string, number>> => {
  const sums: Record<string, number> = {}
  for (const { failures } of all)
    for (const [name, count] of Object.entries(failures)) sums[name] = (sums[name] ?? 0) + count
  return sums
}

export const printHonest = (
  idle: HonestSamples,
  loaded: HonestSamples,
  late: HonestSamples,
): void => {
  const rows = kinds.map((kind) => {
    const before = timesOf(idle, kind)
    // a call that began under load counts, even if it ended later
    const during = [...timesOf(loaded, kind), ...timesOf(late, kind)]
    const p99 = (list: readonly number[]) => percentile(list, 0.99)
    return [
      kind,
      figure(median(before)),
      figure(p99(before)),
      String(during.length),
      figure(median(during)),
      figure(p99(during)),
      figure(percentile(during, 1)),
      times(median(during) / median(before)),
      times(p99(during) / p99(before)),
    ]
  })
  printTable(
    "ms of the honest",
    ["", "idle p50", "idle p99", "calls", "p50", "p99", "most", "p50 to idle", "p99 to idle"],
    rows,
  )
  const failures = Object.entries(failuresOf([idle, loaded, late]))
  console.log(
    failures.length === 0
      ? "\nall honest calls were answered well"
      : `\nhonest calls that failed: ${failures.map(([name, n]) => `${n} x ${name}`).join(", ")}`,
  )
}

export const printHostile = (counts: HostileCounts): void => {
  const rows = Object.entries(counts).map(([name, statuses]) => [
    name,
    Object.entries(statuses)
      .map(([status, n]) => `${status}: ${n}`)
      .join("  "),
  ])
  printTable("replies to the hostile", ["", "status: times"], rows)
}

/** The slope of the line through the samples, in MB a minute. */
const slopeOf = (samples: readonly RssSample[]): number => {
  const mean = (list: readonly number[]) => list.reduce((a, b) => a + b, 0) / list.length
  const minutes = samples.map(({ atMs }) => atMs / 60_000)
  const middle = mean(minutes)
  const level = mean(samples.map(({ mb }) => mb))
  const above = samples.reduce((sum, { mb }, i) => sum + (minutes[i]! - middle) * (mb - level), 0)
  return above / minutes.reduce((sum, minute) => sum + (minute - middle) ** 2, 0)
}

export const printTrend = (samples: readonly RssSample[], afterMb: number): void => {
  const second = samples.slice(Math.floor(samples.length / 2))
  console.log(
    `\nmemory   most ${figure(Math.max(...samples.map(({ mb }) => mb)))} MB, ${figure(afterMb)} MB 20 s after; in the second half ${figure(slopeOf(second))} MB a minute`,
  )
}
