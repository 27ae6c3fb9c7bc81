import type { ModelEntry } from "../../core/services/model-entry.ts"

/** How a model's weights are kept, as its entry says; `-` where that is left to the backend. */
export const precisionOf = ({ options }: Pick<ModelEntry, "options">): string => {
  const { precision } = (options ?? {}) as { readonly precision?: unknown }
  return typeof precision === "string" ? precision : "-"
}

/** Pads each column to its widest cell. */
export const formatTable = (rows: readonly (readonly string[])[]): string => {
  const widths = (rows[0] ?? []).map((_, column) =>
    Math.max(...rows.map((row) => (row[column] ?? "").length)),
  )
  return rows
    .map(
      (row) =>
        `${row
          .map((cell, column) =>
            column === row.length - 1 ? cell : cell.padEnd(widths[column] ?? 0),
          )
          .join("  ")
          .trimEnd()}\n`,
    )
    .join("")
}
