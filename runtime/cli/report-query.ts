import type { Ledger, ReportGroup } from "../../core/ports/ledger.ts"

export interface ReportWords {
  readonly from?: string
  readonly to?: string
  readonly by: string
  readonly account?: string
  readonly json: boolean
  readonly csv: boolean
}

type ReportQuery = Parameters<Ledger["report"]>[0]

const groups: readonly ReportGroup[] = ["account", "key", "model", "day"]
const dayMs = 86_400_000
const endOfTimeMs = Date.UTC(10_000, 0)

/** Reads a UTC date or Unix seconds. As the end of a range, a date includes its whole day. */
const momentOf = (
  option: string,
  text: string,
): { readonly ms: number; readonly endMs: number } => {
  const isDay = /^\d{4}-\d\d-\d\d$/.test(text)
  const ms = isDay
    ? Date.parse(`${text}T00:00:00Z`)
    : /^\d{1,12}$/.test(text)
      ? Number(text) * 1000
      : Number.NaN
  if (ms >= 0 && ms < endOfTimeMs && (!isDay || new Date(ms).toISOString().startsWith(text)))
    return { ms, endMs: isDay ? ms + dayMs : ms }
  throw new Error(
    `${option} ${text}: this is no date. Fix: write it as YYYY-MM-DD (UTC), or as Unix seconds.`,
  )
}

const readGroups = (by: string): readonly ReportGroup[] => {
  const names = by === "" ? [] : by.split(",")
  const isKnown = names.every(
    (name, index) => groups.includes(name as ReportGroup) && names.indexOf(name) === index,
  )
  if (!isKnown)
    throw new Error(
      `--by ${by}: unknown, or twice. Fix: name some of ${groups.join(",")}, with commas between.`,
    )
  return names as ReportGroup[]
}

/**
 * By default everything until now; a date as --to includes its whole day. Throws an Error that says
 * what to do.
 */
export const readReportQuery = (
  { from, to, by, account, json, csv }: ReportWords,
  nowMs: number,
): ReportQuery => {
  if (json && csv) throw new Error("--json and --csv can't both be. Fix: choose one.")
  const fromMs = from === undefined ? 0 : momentOf("--from", from).ms
  const end = to === undefined ? { ms: nowMs, endMs: nowMs + 1 } : momentOf("--to", to)
  if (fromMs > Math.max(end.ms, end.endMs - 1))
    throw new Error(`--from ${from} is after ${to === undefined ? "now" : `--to ${to}`}.`)
  return {
    groupBy: readGroups(by),
    fromMs,
    toMs: end.endMs,
    ...(account !== undefined && { account }),
  }
}
