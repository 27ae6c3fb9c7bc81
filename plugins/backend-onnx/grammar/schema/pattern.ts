/** A pattern that can't be enforced; the message names the part. */
export class PatternRefused extends Error {
  override readonly name = "PatternRefused"
}

const refuse = (what: string): never => {
  throw new PatternRefused(what)
}

// llguidance's own character classes differ from ECMAScript's, so these are written out
const classes: Readonly<Record<string, string>> = {
  d: "0-9",
  w: "0-9A-Za-z_",
  s: "\\x{9}-\\x{d}\\x{20}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}\\x{feff}",
}
const anyButLineEnds = "[^\\x{a}\\x{d}\\x{2028}\\x{2029}]"
const anything = "(?s:.*)"
const controls: Readonly<Record<string, number>> = { t: 9, n: 10, v: 11, f: 12, r: 13, 0: 0 }
const mostRepeats = 10_000

const writeChar = (code: number): string =>
  /[0-9A-Za-z]/.test(String.fromCodePoint(code))
    ? String.fromCodePoint(code)
    : `\\x{${code.toString(16)}}`

/**
 * `\p{..}` as ranges of this process's version of Unicode, not of the one that the crate was built
 * with.
 */
const propertyRanges = new Map<string, string>()
const rangesOf = (property: string): string => {
  const known = propertyRanges.get(property)
  if (known !== undefined) return known
  const rule = new RegExp(`^${property}$`, "u")
  const ranges: string[] = []
  let start = -1
  for (let code = 0; code <= 0x110000; code++) {
    const isIn =
      code < 0x110000 && (code < 0xd800 || code > 0xdfff) && rule.test(String.fromCodePoint(code))
    if (isIn && start < 0) start = code
    if (!isIn && start >= 0) {
      ranges.push(`\\x{${start.toString(16)}}-\\x{${(code - 1).toString(16)}}`)
      start = -1
    }
  }
  const text = ranges.join("")
  if (propertyRanges.size > 64) propertyRanges.clear()
  propertyRanges.set(property, text)
  return text
}

interface Alternative {
  readonly text: string
  readonly atStart: boolean
  readonly atEnd: boolean
}

type Escape = { readonly char: number } | { readonly set: string; readonly isNegated: boolean }

const writtenItem = (item: Escape): string => {
  if ("char" in item) return writeChar(item.char)
  return item.isNegated ? `[^${item.set}]` : item.set
}

const isAnchored = (alternatives: readonly Alternative[]): boolean =>
  alternatives.some(({ atStart, atEnd }) => atStart || atEnd)

const written = (term: string | readonly Alternative[]): string =>
  typeof term === "string" ? term : `(?:${term.map(({ text }) => text).join("|")})`

class Parser {
  private readonly source: string
  private at = 0

  constructor(source: string) {
    this.source = source
  }

  whole(): readonly Alternative[] {
    const alternatives = this.alternatives()
    if (this.at < this.source.length) refuse("its parentheses don't match")
    return alternatives
  }

  private eat(text: string): boolean {
    if (!this.source.startsWith(text, this.at)) return false
    this.at += text.length
    return true
  }

  private match(rule: RegExp): RegExpExecArray | undefined {
    rule.lastIndex = this.at
    const found = rule.exec(this.source)
    if (!found) return undefined
    this.at += found[0].length
    return found
  }

  private alternatives(): readonly Alternative[] {
    const found = [...this.alternative()]
    while (this.eat("|")) found.push(...this.alternative())
    return found
  }

  /**
   * Parses an alternative, or the alternatives of a group that spans the whole pattern, as anchors
   * may stand at their ends.
   */
  private alternative(): readonly Alternative[] {
    let atStart = false
    while (this.eat("^")) atStart = true
    const terms: (string | readonly Alternative[])[] = []
    while (this.at < this.source.length && !/[|)$]/.test(this.source[this.at]!)) {
      if (this.eat("^")) refuse("an anchor (^) inside of it")
      terms.push(this.term())
    }
    let atEnd = false
    while (this.eat("$")) atEnd = true
    if (this.at < this.source.length && !/[|)]/.test(this.source[this.at]!))
      refuse("an anchor ($) inside of it")
    const anchored = terms.find((term) => typeof term !== "string" && isAnchored(term)) as
      | readonly Alternative[]
      | undefined
    if (!anchored) return [{ text: terms.map(written).join(""), atStart, atEnd }]
    if (terms.length > 1) return refuse("an anchor inside of it")
    return anchored.map((one) => ({
      text: one.text,
      atStart: atStart || one.atStart,
      atEnd: atEnd || one.atEnd,
    }))
  }

  private term(): string | readonly Alternative[] {
    const atom = this.atom()
    const repeated = this.quantifier()
    if (repeated === "") return atom
    if (typeof atom !== "string" && isAnchored(atom)) refuse("an anchor inside of it")
    return written(atom) + repeated
  }

  private quantifier(): string {
    const found = this.match(/(?:[*+?]|\{(\d+)(?:,(\d*))?\})\??/y)
    if (!found) return ""
    if (Math.max(Number(found[1] ?? 0), Number(found[2] || 0)) > mostRepeats)
      refuse(`more than ${mostRepeats} repetitions`)
    return found[0].length > 1 && found[0].endsWith("?") ? found[0].slice(0, -1) : found[0]
  }

  private atom(): string | readonly Alternative[] {
    if (this.eat("(")) return this.parenthesis()
    if (this.eat("[")) return this.charClass()
    if (this.eat(".")) return anyButLineEnds
    if (this.eat("\\")) {
      const escaped = this.escape(false)
      return "char" in escaped
        ? writeChar(escaped.char)
        : `[${escaped.isNegated ? "^" : ""}${escaped.set}]`
    }
    if (/[*+?]/.test(this.source[this.at]!)) refuse("a quantifier with nothing before it")
    return writeChar(this.nextChar())
  }

  private nextChar(): number {
    const code = this.source.codePointAt(this.at)!
    this.at += code > 0xffff ? 2 : 1
    return code
  }

  private parenthesis(): readonly Alternative[] {
    if (
      !this.eat("?:") &&
      !this.match(/\?<[\p{ID_Start}$_][\p{ID_Continue}$]*>/uy) &&
      this.source[this.at] === "?"
    ) {
      refuse(
        /^\?<?[=!]/.test(this.source.slice(this.at))
          ? "a lookahead or lookbehind"
          : "a group with flags",
      )
    }
    const alternatives = this.alternatives()
    if (!this.eat(")")) refuse("its parentheses don't match")
    return alternatives
  }

  private escape(isInClass: boolean): Escape {
    const set = this.match(/[dwsDWS]/y)?.[0]
    if (set) return { set: classes[set.toLowerCase()]!, isNegated: set !== set.toLowerCase() }
    const property = this.match(/([pP])(\{[\w=]+\})/y)
    if (property) return { set: rangesOf(`\\p${property[2]}`), isNegated: property[1] === "P" }
    const pair = this.match(/u([dD][89abAB][\da-fA-F]{2})\\u([dD][c-fC-F][\da-fA-F]{2})/y)
    if (pair)
      return {
        char: String.fromCharCode(
          Number.parseInt(pair[1]!, 16),
          Number.parseInt(pair[2]!, 16),
        ).codePointAt(0)!,
      }
    const hex = this.match(/x([\da-fA-F]{2})|u([\da-fA-F]{4})|u\{([\da-fA-F]+)\}/y)
    if (hex) return { char: this.scalar(Number.parseInt(hex[1] ?? hex[2] ?? hex[3]!, 16)) }
    const control = this.match(/c([a-zA-Z])/y)
    if (control) return { char: control[1]!.charCodeAt(0) % 32 }
    const plain = this.match(/[tnvfr]|0(?!\d)/y)?.[0]
    if (plain) return { char: controls[plain]! }
    if (isInClass && this.eat("b")) return { char: 8 }
    if (/[bB]/.test(this.source[this.at] ?? "")) refuse("a word boundary")
    if (/[1-9k]/.test(this.source[this.at] ?? "")) refuse("a reference to a group")
    if (/[A-Za-z0-9]|^$/.test(this.source[this.at] ?? ""))
      refuse(`the escape \\${this.source[this.at] ?? ""}`)
    return { char: this.nextChar() }
  }

  private scalar(code: number): number {
    return code <= 0x10ffff && (code < 0xd800 || code > 0xdfff)
      ? code
      : refuse("half of a surrogate pair")
  }

  private charClass(): string {
    const isNegated = this.eat("^")
    let text = ""
    while (!this.eat("]")) {
      if (this.at >= this.source.length) refuse("its brackets don't match")
      const from = this.classItem()
      const isRange = "char" in from && /^-[^\]]/.test(this.source.slice(this.at))
      if (!isRange) text += writtenItem(from)
      else {
        this.at++
        const to = this.classItem()
        if (!("char" in from) || !("char" in to))
          text += `${writtenItem(from)}\\x{2d}${writtenItem(to)}`
        else if (from.char > to.char) refuse("a range in the wrong order")
        else text += `${writeChar(from.char)}-${writeChar(to.char)}`
      }
    }
    // an empty class matches nothing, its negation every character
    if (text === "") return isNegated ? "(?s:.)" : refuse("a class that matches nothing")
    return `[${isNegated ? "^" : ""}${text}]`
  }

  private classItem(): Escape {
    return this.eat("\\") ? this.escape(true) : { char: this.scalar(this.nextChar()) }
  }
}

/**
 * Drops the backslash of escapes that mean their character and that Unicode mode refuses: `\-`
 * outside of a class, `\_`, `\"`.
 */
const withoutIdleEscapes = (pattern: string): string => {
  let isInClass = false
  return pattern.replace(/\\([\s\S])|[[\]]/gu, (token, escaped?: string) => {
    if (escaped === undefined) isInClass = token === "[" || (isInClass && token !== "]")
    else if (/[^A-Za-z0-9^$\\.*+?()[\]{}|/-]/u.test(escaped) || (escaped === "-" && !isInClass))
      return escaped
    return token
  })
}

/**
 * Compiles a pattern as validators do: in Unicode mode (ajv's default, Python, Rust), and in the
 * older mode where only that accepts it.
 */
export const ecmaPattern = (pattern: string): RegExp => {
  try {
    return new RegExp(withoutIdleEscapes(pattern), "u")
  } catch {
    return new RegExp(pattern)
  }
}

/**
 * Converts an ECMAScript pattern, which matches anywhere in a string, to one of llguidance for the
 * whole string. Throws `PatternRefused`.
 */
export const wholePattern = (pattern: string): string => {
  try {
    ecmaPattern(pattern)
  } catch {
    refuse("it is no regular expression")
  }
  const alternatives = new Parser(pattern).whole()
  return `^(?:${alternatives.map(({ text, atStart, atEnd }) => `${atStart ? "" : anything}${text}${atEnd ? "" : anything}`).join("|")})$`
}
