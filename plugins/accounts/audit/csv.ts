/** Texts that a spreadsheet would run as a formula. */
const startsFormula = /^[=+\-@\t\r]/

const cell = (text: string): string => {
  const plain = startsFormula.test(text) ? `'${text}` : text
  return /[",\r\n]/.test(plain) ? `"${plain.replaceAll('"', '""')}"` : plain
}

/**
 * Returns a record (RFC 4180) with its line end. Cells that would be formulas are prefixed with
 * `'`.
 */
export const csvLine = (cells: readonly string[]): string => `${cells.map(cell).join(",")}\r\n`
