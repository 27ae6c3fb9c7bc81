import type { Document, LineCounter } from "yaml"
import { isNode } from "yaml"

/** Keys and indexes from the root of the config file. */
export type ConfigPath = readonly (string | number)[]

/** A problem of a deployment: where, what, and how to fix it. */
export interface Problem {
  readonly path: ConfigPath
  readonly message: string
  readonly fix: string
}

export class ConfigError extends Error {
  readonly problems: readonly string[]
  constructor(problems: readonly string[]) {
    super(problems.join("\n"))
    this.name = "ConfigError"
    this.problems = problems
  }
}

/** Formats a path as `models[0].task`; keys that are no plain words are quoted. */
export const configPath = (path: ConfigPath): string =>
  path.reduce<string>((text, key) => {
    if (typeof key === "number") return `${text}[${key}]`
    const plain = /^[\w@/.-]+$/.test(key) ? key : JSON.stringify(key)
    return text ? `${text}.${plain}` : plain
  }, "")

/** The parsed file, to find the line and column of a path. */
export interface Locator {
  readonly file: string
  readonly document: Document
  readonly lines: LineCounter
}

const positionOf = ({ document, lines }: Locator, path: ConfigPath): string => {
  for (let length = path.length; length > 0; length--) {
    const node = document.getIn(path.slice(0, length), true)
    if (isNode(node) && node.range) {
      const { line, col } = lines.linePos(node.range[0])
      return `:${line}:${col}`
    }
  }
  return ""
}

export const formatProblem = (where: Locator, { path, message, fix }: Problem): string =>
  `${where.file}${positionOf(where, path)}${path.length ? ` ${configPath(path)}` : ""}: ${message}\n    Fix: ${fix}`

/**
 * Returns the known word nearest to `word` if it could be a typo (Levenshtein distance of at most
 * two or a third of its length).
 */
export const nearest = (word: string, known: readonly string[]): string | undefined => {
  const distance = (a: string, b: string): number => {
    let row = Array.from({ length: b.length + 1 }, (_, i) => i)
    for (let i = 1; i <= a.length; i++) {
      const next = [i]
      for (let j = 1; j <= b.length; j++)
        next.push(
          Math.min(row[j]! + 1, next[j - 1]! + 1, row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1)),
        )
      row = next
    }
    return row[b.length]!
  }
  const [best] = known
    .map((name) => ({ name, d: distance(word.toLowerCase(), name.toLowerCase()) }))
    .sort((a, b) => a.d - b.d)
  return best && best.d <= Math.max(2, Math.floor(word.length / 3)) ? best.name : undefined
}
