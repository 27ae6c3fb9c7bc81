import { displayRupiah, formatRupiah, rupiahNumber } from "../../core/money.ts"
import type { LedgerProof, ReportGroup, ReportRow } from "../../core/ports/ledger.ts"
import { formatTable } from "./table.ts"

/** One line for each invariant with the number of rows checked, then its faults. */
export const proofText = ({ checked, faults }: LedgerProof): string => {
  const lines = checked.map(({ invariant, rows }) => {
    const own = faults.filter((fault) => fault.invariant === invariant)
    return [
      `${own.length === 0 ? "ok   " : "FAULT"}  ${invariant} (${rows} ${rows === 1 ? "row" : "rows"})\n`,
      ...own.map(({ detail }) => `         ${detail}\n`),
    ].join("")
  })
  return `${lines.join("")}${faults.length === 0 ? "The ledger is sound.\n" : "The ledger is not sound.\n"}`
}

const sumOf = (rows: readonly ReportRow[]): ReportRow => {
  const add = (pick: (row: ReportRow) => number) => rows.reduce((sum, row) => sum + pick(row), 0)
  return {
    groups: [],
    requests: add((row) => row.requests),
    errors: add((row) => row.errors),
    inputTokens: add((row) => row.inputTokens),
    outputTokens: add((row) => row.outputTokens),
    costMicros: rows.reduce((sum, row) => sum + row.costMicros, 0n),
  }
}

const countsOf = (row: ReportRow): readonly number[] => [
  row.requests,
  row.errors,
  row.inputTokens,
  row.outputTokens,
]
/** For reading. */
const shownCells = (row: ReportRow): readonly string[] => [
  ...countsOf(row).map((n) => n.toLocaleString("en")),
  displayRupiah(row.costMicros),
]
const exactCells = (row: ReportRow): readonly string[] => [
  ...countsOf(row).map(String),
  formatRupiah(row.costMicros),
]

/** Numbers are aligned to the right. */
export const reportTable = (
  groupBy: readonly ReportGroup[],
  rows: readonly ReportRow[],
): string => {
  const labels = (texts: readonly string[]) =>
    groupBy.length === 0 ? ["TOTAL"] : groupBy.map((_, index) => texts[index] || "-")
  const lines = [
    [
      ...(groupBy.length === 0 ? [""] : groupBy.map((group) => group.toUpperCase())),
      "REQUESTS",
      "ERRORS",
      "INPUT TOKENS",
      "OUTPUT TOKENS",
      "COST",
    ],
    ...rows.map((row) => [...labels(row.groups), ...shownCells(row)]),
    ...(groupBy.length === 0
      ? []
      : [["TOTAL", ...groupBy.slice(1).map(() => ""), ...shownCells(sumOf(rows))]]),
  ]
  const numbersFrom = Math.max(1, groupBy.length)
  const widths =
    lines[0]?.map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0))) ?? []
  return formatTable(
    lines.map((line) =>
      line.map((cell, column) =>
        column < numbersFrom ? cell : cell.padStart(widths[column] ?? 0),
      ),
    ),
  )
}

const jsonOf = (groupBy: readonly ReportGroup[], row: ReportRow) => ({
  ...Object.fromEntries(groupBy.map((group, index) => [group, row.groups[index] || null])),
  requests: row.requests,
  errors: row.errors,
  input_tokens: row.inputTokens,
  output_tokens: row.outputTokens,
  cost_idr: rupiahNumber(row.costMicros),
})

/** CSV as in RFC 4180. */
export const reportCsv = (groupBy: readonly ReportGroup[], rows: readonly ReportRow[]): string => {
  const quoted = (cell: string) =>
    /[",\r\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell
  const lines = [
    [...groupBy, "requests", "errors", "input_tokens", "output_tokens", "cost_idr"],
    ...rows.map((row) => [...row.groups, ...exactCells(row)]),
  ]
  return lines.map((line) => `${line.map(quoted).join(",")}\r\n`).join("")
}

export const reportJson = (groupBy: readonly ReportGroup[], rows: readonly ReportRow[]): string =>
  `${JSON.stringify({ object: "ledger_report", data: rows.map((row) => jsonOf(groupBy, row)), total: jsonOf([], sumOf(rows)) })}\n`
