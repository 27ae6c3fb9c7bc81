/** A text that a spreadsheet would run as a formula is prefixed with a quote. */
const cellOf = (value) => {
  const text = String(value ?? "")
  const plain = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text
  return /[",\r\n]/.test(plain) ? `"${plain.replaceAll('"', '""')}"` : plain
}

/** Returns the rows, arrays of texts, as CSV (RFC 4180). */
export const csvOf = (rows) => rows.map((row) => `${row.map(cellOf).join(",")}\r\n`).join("")
