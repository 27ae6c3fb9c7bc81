import type { ModelEntry } from "../../core/services/model-entry.ts"

/** How a model's weights are kept, as its entry says; `-` where that is left to the backend. */
export const precisionOf = ({ options }: Pick<ModelEntry, "options">): string => {
  const { precision } = (options ?? {}) as { readonly precision?: unknown }
  return typeof precision === "string" ? precision : "-"
}

const longestQuote = 300

/** What another server said, for a terminal: without what would steer it, and not for pages. */
export const quotable = (text: string): string =>
  text.slice(0, longestQuote).replace(/\p{C}+/gu, " ")

type Row = readonly string[]

const gap = "  "
/** Longer words are broken, as those of addresses. */
const longestWord = 24

const naturalWidths = (rows: readonly Row[]): number[] =>
  (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => (row[column] ?? "").length)))

const widestWord = (text: string): number =>
  Math.min(longestWord, Math.max(...text.split(" ").map(({ length }) => length)))

/** Takes from the widest column until the row fits, but breaks no short word. */
const fittedWidths = (rows: readonly Row[], most: number): readonly number[] => {
  const widths = naturalWidths(rows)
  const least = widths.map((_, column) =>
    Math.max(...rows.map((row) => widestWord(row[column] ?? ""))),
  )
  const room = most - gap.length * (widths.length - 1)
  for (let over = widths.reduce((sum, width) => sum + width, 0) - room; over > 0; over--) {
    const spare = widths.map((width, column) => (width > (least[column] ?? 0) ? width : 0))
    const widest = Math.max(...spare)
    if (widest === 0) break
    const column = spare.indexOf(widest)
    widths[column] = widest - 1
  }
  return widths
}

/** Where a word that is longer than a line is broken: behind a separator, as of a path. */
const breakOf = (word: string, width: number): number => {
  const at = Math.max(
    ...["/", "=", ",", "_", "-", "."].map((one) => word.lastIndexOf(one, width - 1)),
  )
  return at + 1 > width / 2 ? at + 1 : width
}

/** Lines of at most `width` characters, broken between words where that is possible. */
export const wrapped = (text: string, width: number): readonly string[] => {
  const lines: string[] = []
  let line = ""
  for (let word of text.split(" ")) {
    if (line !== "" && line.length + 1 + word.length > width) {
      lines.push(line)
      line = ""
    }
    while (word.length > width) {
      const end = breakOf(word, width)
      lines.push(word.slice(0, end))
      word = word.slice(end)
    }
    line = line === "" ? word : `${line} ${word}`
  }
  return [...lines, line]
}

/**
 * Pads each column to its widest cell. `width`: how long a line may be; cells are broken into
 * several lines then.
 */
export const formatTable = (rows: readonly Row[], width = Number.POSITIVE_INFINITY): string => {
  const widths = Number.isFinite(width) ? fittedWidths(rows, width) : naturalWidths(rows)
  const linesOf = (row: Row): readonly string[] => {
    const cells = row.map((cell, column) =>
      Number.isFinite(width) ? wrapped(cell, widths[column] ?? longestWord) : [cell],
    )
    const height = Math.max(...cells.map((lines) => lines.length))
    return Array.from({ length: height }, (_, n) =>
      cells
        .map((lines, column) =>
          column === row.length - 1
            ? (lines[n] ?? "")
            : (lines[n] ?? "").padEnd(widths[column] ?? 0),
        )
        .join(gap)
        .trimEnd(),
    )
  }
  return rows
    .flatMap(linesOf)
    .map((line) => `${line}\n`)
    .join("")
}
