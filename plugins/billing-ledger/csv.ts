import type { Strings } from "../../core/index.ts"

/**
 * A number is written as it is; a text that a spreadsheet would run as a formula is prefixed with a
 * quote.
 */
export type Cell = { readonly text: string } | { readonly number: string }

const cellOf = (cell: Cell): string => {
  if ("number" in cell) return cell.number
  const text = /^[=+\-@\t\r]/.test(cell.text) ? `'${cell.text}` : cell.text
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

export const text = (value: string | null): Cell => ({ text: value ?? "" })
export const number = (value: string | number | bigint): Cell => ({ number: String(value) })

/** RFC 4180: commas, CRLF, quotes doubled. */
export const csvLine = (cells: readonly Cell[]): string => `${cells.map(cellOf).join(",")}\r\n`

export const csvType = "text/csv; charset=utf-8; header=present"

export const csvHeaders = (name: string): Strings => ({
  "content-disposition": `attachment; filename="${name}.csv"`,
  "cache-control": "no-store",
})
