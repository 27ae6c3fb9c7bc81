import type { Json } from "../../../core/json.ts"

/** A number of a JSON text that JavaScript would write otherwise: `1.0`, or one of twenty digits. */
export class WrittenNumber {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }

  get isFloat(): boolean {
    return /[.eE]/.test(this.text)
  }

  toJSON(): number {
    return Number(this.text)
  }
}

const number = /^-?\d+(\.\d+)?([eE][+-]?\d+)?$/

const keepsText = (text: string): boolean =>
  number.test(text) &&
  (/[.eE]/.test(text) ? Number.isInteger(Number(text)) : !Number.isSafeInteger(Number(text)))

// strings and names of properties are matched, too, so that numbers inside of them are not
const literals = /"[^"\\]*(?:\\.[^"\\]*)*"(\s*:)?|-?\d[\d.eE+-]*/gs

/** Parses a JSON text; numbers that JavaScript would write otherwise are of `WrittenNumber`. */
export const parseAsWritten = (text: string): Json => {
  const plain = JSON.parse(text) as Json
  let isPlain = true
  // every string begins with a letter that says what it is
  const marked = text.replaceAll(literals, (literal, name?: string) => {
    if (name !== undefined) return literal
    if (literal.startsWith('"')) return `"s${literal.slice(1)}`
    if (!keepsText(literal)) return literal
    isPlain = false
    return `"n${literal}"`
  })
  if (isPlain) return plain
  return JSON.parse(marked, (_, value: unknown) => {
    if (typeof value !== "string") return value
    return value.startsWith("n") ? new WrittenNumber(value.slice(1)) : value.slice(1)
  }) as Json
}
