// How soon an outage of the database is noticed, and how soon calls go on after it: against the time
// that the database itself takes to come back. `npm run build && node --import tsx bench/outage.ts
// [--rounds 3] [--ms 60000]`; `--ms`: how long an outage lasts.
import { codeInWords } from "./deployment/code.ts"
import { printLoadAfter, printMachine } from "./measure/machine.ts"
import { readOptions } from "./measure/options.ts"
import { alternate, median, medianOf } from "./measure/rounds.ts"
import { figure, printTable, times } from "./measure/table.ts"
import { outageCases } from "./outage/cases.ts"

const { rounds, ms } = readOptions({ rounds: 3, ms: 60_000 })
const startedMs = performance.now()
printMachine("Outages of the database", codeInWords)
const cases = outageCases(ms)
const results = await alternate(cases, rounds, (one) => one.run())
const seconds = (timeMs: number) => figure(timeMs / 1000)
printTable(
  "Seconds (median); from the end of the cause, but for the first column",
  ["", "/readyz says so", "database is back", "first call", "/readyz ready", "call to database"],
  cases.map(({ name }) => [
    name,
    seconds(medianOf(results, name, ({ noticedMs }) => noticedMs)),
    seconds(medianOf(results, name, ({ databaseMs }) => databaseMs)),
    seconds(medianOf(results, name, ({ callMs }) => callMs)),
    seconds(medianOf(results, name, ({ readyMs }) => readyMs)),
    times(median((results.get(name) ?? []).map(({ callMs, databaseMs }) => callMs / databaseMs))),
  ]),
)
printLoadAfter(startedMs)
