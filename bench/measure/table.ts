/** Formats with three significant digits: 3,210 / 321 / 32.1 / 3.21 */
export const figure = (value: number): string => {
  if (!Number.isFinite(value)) return "-"
  if (Math.abs(value) >= 1000) return Math.round(value).toLocaleString("en-US")
  return value.toFixed(Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2)
}

export const times = (ratio: number): string =>
  Number.isFinite(ratio) ? `${figure(ratio)} x` : "-"

/** Aligns the first column left and figures right. */
export const printTable = (
  title: string,
  head: readonly string[],
  rows: readonly (readonly string[])[],
): void => {
  const widths = head.map((name, column) =>
    Math.max(name.length, ...rows.map((row) => (row[column] ?? "").length)),
  )
  const line = (row: readonly string[]) =>
    row
      .map((cell, column) =>
        column === 0 ? cell.padEnd(widths[column]!) : cell.padStart(widths[column]!),
      )
      .join("   ")
  console.log(`\n${title}`)
  for (const row of [head, ...rows]) console.log(`  ${line(row).trimEnd()}`)
}
