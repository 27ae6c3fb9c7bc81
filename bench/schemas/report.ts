import { readFileSync } from "node:fs"
import { figure, printTable } from "../measure/table.ts"
import type { CorpusCount } from "./corpus.ts"
import type { SuiteCount } from "./suite.ts"

type Count = Readonly<Record<string, unknown>>

/** Adds the counts of several slices: numbers are summed, lists joined. */
const sum = (a: unknown, b: unknown): unknown => {
  if (a === undefined) return b
  if (b === undefined) return a
  if (typeof a === "number") return a + (b as number)
  if (Array.isArray(a)) return [...a, ...(b as readonly unknown[])]
  const names = new Set([...Object.keys(a as Count), ...Object.keys(b as Count)])
  return Object.fromEntries(
    [...names].map((name) => [name, sum((a as Count)[name], (b as Count)[name])]),
  )
}

const quantile = (sorted: Float64Array, part: number): string =>
  sorted.length > 0
    ? sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))]!.toFixed(3)
    : "-"

const reportSuite = (parts: readonly (readonly [string, SuiteCount])[]): void =>
  printTable(
    "JSON Schema's own tests, drafts 4 to 2020-12; documents of schemas that are not refused, in any order of properties",
    [
      ...["part", "schemas", "kept", "checked at the end", "never satisfied", "refused by name"],
      ...["documents", "passing", "wrongly accepted", "wrongly rejected"],
    ],
    parts.map(([name, count]) => [
      name,
      ...[count.schemas, count.kept, count.guarded, count.unsatisfiable].map(String),
      ...[count.refused.length, count.documents, count.passing].map(String),
      ...[count.wronglyAccepted.length, count.wronglyRejected.length].map(String),
    ]),
  )

const reportCorpora = (parts: readonly (readonly [string, CorpusCount])[]): void => {
  printTable(
    "Schemas that are in use; documents written by chance under their masks, and altered by chance",
    [
      ...["part", "schemas", "kept", "checked at the end", "refused by name", "invalid"],
      ...["never satisfied", "too complex", "documents", "altered: valid", "invalid"],
      ...["wrongly accepted", "wrongly rejected", "not checked", "not closed", "failed"],
    ],
    parts.map(([name, count]) => [
      name,
      ...[count.schemas, count.kept, count.guarded].map(String),
      String(Object.values(count.refused).reduce((all, one) => all + one, 0)),
      ...[count.invalid.length, count.unsatisfiable.length, count.tooComplex.length].map(String),
      ...[count.documents, count.altered.valid, count.altered.invalid].map(String),
      ...[count.wronglyAccepted.length, count.wronglyRejected.length, count.unchecked].map(String),
      ...[count.unclosed.length, count.failedMasks.length].map(String),
    ]),
  )
  const rows = parts.flatMap(([name, count]) =>
    (["maskMs", "compileMs", "openMs"] as const).map((what) => {
      const sorted = Float64Array.from(count[what]).sort()
      const mean = sorted.reduce((all, one) => all + one, 0) / sorted.length
      return [
        `${name} ${what.slice(0, -2)}`,
        figure(sorted.length),
        mean.toFixed(3),
        ...[0.5, 0.9, 0.95, 0.99, 1].map((part) => quantile(sorted, part)),
      ]
    }),
  )
  printTable("Milliseconds", ["what", "count", "mean", "p50", "p90", "p95", "p99", "most"], rows)
  for (const [name, count] of parts)
    printTable(
      `${name}: refused first for`,
      ["keyword", "schemas"],
      Object.entries(count.refused)
        .sort((a, b) => b[1] - a[1])
        .map(([keyword, schemas]) => [keyword, String(schemas)]),
    )
}

/** Prints the tables of all counts in a file, and the lists whose names hold one of the words. */
export const printReport = (results: string, words: readonly string[]): void => {
  const parts = new Map<string, Count>()
  for (const line of readFileSync(results, "utf8").trim().split("\n")) {
    const { part, count } = JSON.parse(line) as { readonly part: string; readonly count: Count }
    parts.set(part, sum(parts.get(part), count) as Count)
  }
  const all = [...parts]
  const suites = all.filter(([, count]) => "passing" in count)
  const corpora = all.filter(([, count]) => "maskMs" in count)
  if (suites.length > 0) reportSuite(suites as never)
  if (corpora.length > 0) reportCorpora(corpora as never)
  for (const [part, count] of all)
    for (const [name, lines] of Object.entries(count)) {
      const title = `${part} ${name}`
      if (!Array.isArray(lines) || !words.some((word) => title.includes(word))) continue
      console.log(`\n${title}`)
      for (const line of lines) console.log(`  ${line}`)
    }
}
