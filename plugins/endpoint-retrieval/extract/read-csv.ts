import type { TransformOptions } from "node:stream"
import { CsvError, type Options, parse } from "csv-parse"
import { decodeText } from "./decode-text.ts"
import type { Bytes, Part } from "./extract-parts.ts"
import { ReadFailure } from "./read-failure.ts"
import { isVisible } from "./visible-text.ts"

const delimiters = [",", ";", "\t", "|"]
const headCharacters = 16_384
const maxRowCharacters = 1_000_000
const rowsOfPart = 100

const countOf = (line: string, delimiter: string) =>
  line.replace(/"[^"]*"/g, "").split(delimiter).length - 1

/** The delimiter that most lines have equally often, and more than once by preference. */
export const delimiterOf = (head: string): string => {
  const lines = head.split(/\r\n|\n|\r/, 20).filter((line) => line.trim() !== "")
  const score = (delimiter: string) => {
    const counts = lines.map((line) => countOf(line, delimiter))
    const [first = 0] = counts
    return first === 0 ? 0 : counts.filter((count) => count === first).length * 100 + first
  }
  return delimiters.reduce((best, next) => (score(next) > score(best) ? next : best))
}

/** Names of columns are words, all there, each once. */
const isHeader = (row: readonly string[]): boolean =>
  row.length > 1 &&
  new Set(row).size === row.length &&
  row.every((cell) => cell !== "" && !/^[\d.,:/\s+-]+$/.test(cell))

const broken = (cause: unknown): unknown =>
  cause instanceof CsvError
    ? new ReadFailure(
        "broken",
        `The table can't be read after line ${cause.lines ?? 1}: a quotation mark is not closed, or a row is longer than ${maxRowCharacters.toLocaleString("en")} characters.`,
      )
    : cause

/**
 * Takes a text only when all rows of the one before were taken: a pipe reads ahead, and would ask
 * for bytes while the rows before them fail or wait.
 */
async function* rowsOf(texts: AsyncIterable<string>, delimiter: string): AsyncGenerator<string[]> {
  const options: Options & TransformOptions = {
    delimiter,
    relax_column_count: true,
    relax_quotes: true,
    skip_empty_lines: true,
    max_record_size: maxRowCharacters,
    trim: true,
    // all rows of one text
    readableHighWaterMark: Number.MAX_SAFE_INTEGER,
  }
  const parser = parse(options)
  // `written` has it
  parser.on("error", () => {})
  const written = (write: (done: (cause?: Error | null) => void) => void) =>
    new Promise<void>((resolve, reject) => {
      write((cause) => (cause ? reject(cause) : resolve()))
    })
  function* rows(): Generator<string[]> {
    for (let row = parser.read(); row !== null; row = parser.read()) yield row
  }
  try {
    for await (const text of texts) {
      await written((done) => parser.write(text, done))
      yield* rows()
    }
    await written((done) => parser.end(done))
    yield* rows()
  } finally {
    parser.destroy()
  }
}

/** One line, where each cell has its column's name, so that a row found alone is understood. */
const lineOf = (row: readonly string[], names: readonly string[] | undefined): string =>
  row
    .map((cell) => (isVisible(cell) ? cell.replace(/\s+/g, " ") : ""))
    .map((cell, column) => {
      const name = names?.[column]
      return name === undefined || cell === "" ? cell : `${name}: ${cell}`
    })
    .filter((cell) => cell !== "")
    .join(" | ")

const withHead = async (
  texts: AsyncGenerator<string>,
): Promise<readonly [string, AsyncIterable<string>]> => {
  let head = ""
  while (head.length < headCharacters) {
    const { done, value } = await texts.next()
    if (done) break
    head += value
  }
  async function* all() {
    yield head
    yield* texts
  }
  return [head, all()]
}

/** The rows of a table, a line each. */
export async function* readCsv(bytes: Bytes): AsyncGenerator<Part> {
  const [head, all] = await withHead(decodeText(bytes))
  let names: readonly string[] | undefined
  let isFirst = true
  let lines: string[] = []
  try {
    for await (const row of rowsOf(all, delimiterOf(head))) {
      lines.push(lineOf(row, names))
      if (isFirst && isHeader(row)) names = row.map((cell) => cell.replace(/\s+/g, " "))
      isFirst = false
      if (lines.length < rowsOfPart) continue
      yield { text: `${lines.join("\n")}\n` }
      lines = []
    }
  } catch (cause) {
    throw broken(cause)
  }
  yield { text: `${lines.join("\n")}\n` }
}
