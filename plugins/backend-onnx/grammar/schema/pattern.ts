import { plainOf } from "./pattern/automaton.ts"
import { Languages, type Term } from "./pattern/language.ts"
import {
  anyText,
  type PatternNode,
  PatternRefused,
  parsePattern,
  refuse,
} from "./pattern/parser.ts"
import { searchOf } from "./pattern/translation.ts"
import { write } from "./pattern/writing.ts"

export { PatternRefused }

/**
 * Writes a pattern of the older mode as one that Unicode mode accepts with the same meaning:
 * escapes of plain characters (`\-`, `\_`), braces and brackets that stand for themselves, and a
 * dash beside a class (`[\w-.]`).
 */
const inUnicodeMode = (pattern: string): string => {
  const tokens = pattern.match(/\\[pPu]\{\w[\w=]*\}|\\[\s\S]|\{\d+(?:,\d*)?\}|[\s\S]/gu) ?? []
  const isClass = (token = "") => /^\\(?:[dwsDWS]$|[pP]\{)/.test(token)
  let isInClass = false
  return tokens
    .map((token, i) => {
      if (token.length === 2 && token[0] === "\\") return unicodeEscape(token, isInClass)
      if (isInClass) {
        isInClass = token !== "]"
        const isDash = token === "-" && (isClass(tokens[i - 1]) || isClass(tokens[i + 1]))
        return isDash && tokens[i + 1] !== "]" ? "\\-" : token
      }
      isInClass = token === "["
      return ["]", "{", "}"].includes(token) ? `\\${token}` : token
    })
    .join("")
}

const unicodeEscape = (token: string, isInClass: boolean): string => {
  const escaped = token.slice(1)
  return /[dwsDWSbBpPkcxu0-9tnvfr^$\\.*+?()[\]{}|/]/.test(escaped) || (escaped === "-" && isInClass)
    ? token
    : escaped
}

/**
 * Compiles a pattern as validators do: in Unicode mode (ajv's default, Python, Rust), and in the
 * older mode where nothing else reads it.
 */
export const ecmaPattern = (pattern: string): RegExp => {
  for (const read of [() => pattern, () => inUnicodeMode(pattern)])
    try {
      return new RegExp(read(), "u")
    } catch {
      // the other way
    }
  return new RegExp(pattern)
}

const isPattern = (pattern: string): boolean => {
  try {
    ecmaPattern(pattern)
    return true
  } catch {
    return false
  }
}

/** Parses an ECMAScript pattern. Throws `PatternRefused`. */
export const parse = (pattern: string): PatternNode =>
  isPattern(pattern) ? parsePattern(pattern) : refuse("it is no regular expression")

/** Returns the ECMAScript pattern that matches where this one does not. */
export const withoutMatch = (pattern: string): string => `^(?![\\s\\S]*(?:${pattern}))`

/** Patterns of llguidance for the whole string, all of which must match. */
export interface WholePatterns {
  readonly patterns: readonly string[]
  /** The fewest and the most characters of a string that matches. */
  readonly least: number
  readonly most: number
}

/** The maximum length of a pattern that an automaton is written out as. */
const longestAutomaton = 10_000

const written = (languages: Languages, term: Term): string => {
  const isPlain = languages.isPlain(term)
  const text = write(languages, isPlain ? term : plainOf(languages, term))
  if (!isPlain && text.length > longestAutomaton) refuse("it is too complex to be written out")
  return `^(?:${text})$`
}

const conjuncts = (languages: Languages, term: Term): readonly Term[] => {
  const shape = languages.shape(term)
  return shape.kind === "and" ? shape.parts : [term]
}

const mostKept = 500
/** The maximum number of derivatives for one pattern, and for all patterns of a schema. */
const mostWork = 20_000
const mostWorkOfSchema = 200_000

let counted = new Set<string>()
let spent = 0

/**
 * Begins to count the work on the patterns of another schema. Beyond the maximum no automaton is
 * written; what is remembered from other schemas counts as well, so that a verdict does not
 * depend on them.
 */
export const countPatternWork = (): void => {
  counted = new Set()
  spent = 0
}

type Maker<A> = (pattern: string, languages: Languages) => A

const attemptOf = <A>(make: Maker<A>, pattern: string, languages: Languages) => {
  try {
    return { made: make(pattern, languages) }
  } catch (cause) {
    if (cause instanceof PatternRefused) return { refused: cause }
    if (cause instanceof RangeError)
      return { refused: new PatternRefused("it is nested too deeply") }
    throw cause
  }
}

/** Schemas say the same patterns again and again, and automata take milliseconds. */
const remembered = <A>(name: string, make: Maker<A>): ((pattern: string) => A) => {
  const known = new Map<string, { readonly made?: A; readonly work: number }>()
  const fresh = (pattern: string) => {
    const languages = new Languages(mostWork)
    return { ...attemptOf(make, pattern, languages), work: languages.work }
  }
  return (pattern) => {
    const isBeyond = spent > mostWorkOfSchema && !counted.has(name + pattern)
    const found = isBeyond
      ? { ...attemptOf(make, pattern, new Languages(0)), work: 0 }
      : (known.get(pattern) ?? fresh(pattern))
    if (!isBeyond) {
      if (known.size >= mostKept) known.clear()
      known.set(pattern, found)
      if (!counted.has(name + pattern)) spent += found.work
      counted.add(name + pattern)
    }
    if ("refused" in found) throw found.refused
    return found.made as A
  }
}

/**
 * Converts an ECMAScript pattern, which matches anywhere in a string, to patterns of llguidance
 * for the whole string. Throws `PatternRefused`.
 */
export const wholePatterns = remembered("all", (pattern, languages) => {
  const term = searchOf(languages, parse(pattern))
  const parts = conjuncts(languages, term)
  try {
    return lengthsBeside(
      languages,
      term,
      parts.map((part) => written(languages, part)),
    )
  } catch (cause) {
    if (!(cause instanceof PatternRefused) || parts.length === 1) throw cause
    // a part may be simple only within the others
    return lengthsBeside(languages, term, [written(languages, term)])
  }
})

const lengthsBeside = (
  languages: Languages,
  term: Term,
  patterns: readonly string[],
): WholePatterns => {
  const [least, most] = languages.lengths(term)
  return { patterns, least: term === languages.never ? Number.POSITIVE_INFINITY : least, most }
}

/** The same as a single pattern. */
export const wholePattern = remembered("one", (pattern, languages) => {
  return written(languages, searchOf(languages, parse(pattern)))
})

/** Returns patterns that accept all strings that the pattern accepts, and others. */
export const widerPatterns = remembered("wider", (pattern, languages): WholePatterns => {
  const node = parse(pattern)
  const term = attempted(() => searchOf(languages, node)) ?? searchOf(languages, wider(node))
  const parts = conjuncts(languages, term).map((part) => attempted(() => written(languages, part)))
  return lengthsBeside(
    languages,
    term,
    parts.filter((part) => part !== undefined),
  )
})

const attempted = <A>(make: () => A): A | undefined => {
  try {
    return make()
  } catch (cause) {
    if (cause instanceof PatternRefused) return undefined
    throw cause
  }
}

/** Drops what is asked of the places around the characters. */
const wider = (node: PatternNode): PatternNode => {
  if (node.kind === "ahead" || node.kind === "behind" || node.kind === "boundary")
    return { kind: "concat", parts: [] }
  if (node.kind === "reference") return anyText
  if ("parts" in node) return { ...node, parts: node.parts.map(wider) }
  return node.kind === "repeat" ? { ...node, of: wider(node.of) } : node
}
