import type { OpenLoadResult } from "../deployment/load-client.ts"
import { median, medianOf, type Rounds } from "../measure/rounds.ts"
import { figure, printTable, times } from "../measure/table.ts"
import { type Held, holdsInWords } from "./hold.ts"

export const sideNames = {
  journal: "rakit, with all of it, replyAfter: journal",
  database: "rakit, with all of it, replyAfter: database",
  without: "rakit, without",
  bare: "limit: bare node:http, same bytes",
}
export type Side = keyof typeof sideNames
const sides = Object.keys(sideNames) as Side[]

export type Result = OpenLoadResult & {
  /** The server's process. */
  readonly cpuUs: number
  /** All processes of PostgreSQL; NaN where they are not ours. */
  readonly databaseUs: number
}

/** Parts of the most that is held with all of it, by default. */
export const loads = [
  { name: "a tenth", share: 1 / 10 },
  { name: "a third", share: 1 / 3 },
  { name: "two thirds", share: 2 / 3 },
] as const
type Load = (typeof loads)[number]

export const keyOf = (side: Side, load: Load["name"]) => `${side}, ${load}`

const isPaid = (side: Side) => side === "journal" || side === "database"

const goal = { medianMs: 2, p95Ms: 5 }

export const printLoad = (rounds: Rounds<Result>, load: Load, highest: number): void => {
  const middle = (side: Side, of: (result: Result) => number) =>
    medianOf(rounds, keyOf(side, load.name), of)
  const of = (side: Side) => rounds.get(keyOf(side, load.name)) ?? []
  const failures = (side: Side) => String(of(side).reduce((sum, one) => sum + one.failures, 0))
  const bareUs = middle("bare", ({ cpuUs }) => cpuUs)
  const rows = sides.map((side) => [
    sideNames[side],
    figure(middle(side, ({ achieved }) => achieved)),
    figure(middle(side, ({ medianMs }) => medianMs)),
    figure(middle(side, ({ p95Ms }) => p95Ms)),
    figure(middle(side, ({ p99Ms }) => p99Ms)),
    figure(middle(side, ({ cpuUs }) => cpuUs)),
    times(middle(side, ({ cpuUs }) => cpuUs) / bareUs),
    isPaid(side) ? figure(middle(side, ({ databaseUs }) => databaseUs)) : "",
    failures(side),
  ])
  printTable(
    `${load.name} of the most that is held: ${Math.round(highest * load.share)} calls/s offered`,
    [
      ...["", "answered/s", "median ms", "p95 ms", "p99 ms", "CPU us a call", "to the limit"],
      ...["PostgreSQL's us", "failures"],
    ],
    rows,
  )
  const added = (side: Side, figureOf: (result: Result) => number) =>
    figure(median(of(side).map((one, round) => figureOf(one) - figureOf(of("without")[round]!))))
  for (const side of sides.filter(isPaid))
    console.log(
      `  added by authentication, limits, hold and settlement with replyAfter: ${side}: median ${added(side, ({ medianMs }) => medianMs)} ms (goal: under ${goal.medianMs}), p95 ${added(side, ({ p95Ms }) => p95Ms)} ms (goal: under ${goal.p95Ms})`,
    )
}

export const printHeld = (held: ReadonlyMap<Side, Held>): void => {
  const rows = sides.map((side) => {
    const { perSecond, result } = held.get(side)!
    return [
      sideNames[side],
      figure(perSecond),
      figure(result?.medianMs ?? Number.NaN),
      figure(result?.p95Ms ?? Number.NaN),
    ]
  })
  printTable(
    `the most that is held (${holdsInWords})`,
    ["", "calls/s", "median ms", "p95 ms"],
    rows,
  )
}
