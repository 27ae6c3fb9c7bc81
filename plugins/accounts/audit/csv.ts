/** What a spreadsheet would take for a formula, and run. */
const startsFormula = /^[=+\-@\t\r]/

const cell = (text: string): string => {
  const plain = startsFormula.test(text) ? `'${text}` : text
  return /[",\r\n]/.test(plain) ? `"${plain.replaceAll('"', '""')}"` : plain
}

/** One record (RFC 4180) with its line end. Cells that would be formulas get a `'` in front. */
export const csvLine = (cells: readonly string[]): string => `${cells.map(cell).join(",")}\r\n`
