import { ecmaPattern, PatternRefused } from "./pattern.ts"

/** A part of a pattern, for matching without backtracking. */
export type PatternNode =
  | { readonly kind: "set"; readonly has: (unit: number) => boolean }
  | { readonly kind: "all"; readonly parts: readonly PatternNode[] }
  | { readonly kind: "any"; readonly options: readonly PatternNode[] }
  | {
      readonly kind: "repeat"
      readonly part: PatternNode
      readonly least: number
      readonly most: number
    }
  | { readonly kind: "edge"; readonly edge: "start" | "end" | "word" | "noWord" }
  | {
      readonly kind: "look"
      readonly part: PatternNode
      readonly isNegated: boolean
      readonly isBehind: boolean
    }

export interface PatternSyntax {
  readonly node: PatternNode
  /** Whether it matches code points rather than halves of surrogate pairs. */
  readonly isUnicode: boolean
}

const deepest = 100
const unicodeEscape =
  /\\(?:u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2}|u\{[\da-fA-F]+\}|u[\da-fA-F]{4}|x[\da-fA-F]{2}|c[A-Za-z]|[pP]\{[^}]*\}|[\s\S])/uy
const plainEscape = /\\(?:u[\da-fA-F]{4}|x[\da-fA-F]{2}|c[A-Za-z]|[0-3]?[0-7]{1,2}|[\s\S])/y
const quantifier = /(?:[*+?]|\{(\d+)(,?)(\d*)\})\??/y
const look = /\?(<?)([=!])/y
const noGroup = /\?(?::|<[^>]*>)/y

const nothing: PatternNode = { kind: "all", parts: [] }

/** Characters that a class or an escape stands for, as the engine of this process reads it. */
const setOf = (token: string, isUnicode: boolean): PatternNode => {
  const rule = new RegExp(`^${token}$`, isUnicode ? "u" : "")
  const known = new Int8Array(128)
  const matches = (unit: number) => rule.test(String.fromCodePoint(unit))
  const has = (unit: number): boolean => {
    if (unit >= 128) return matches(unit)
    if (known[unit] === 0) known[unit] = matches(unit) ? 1 : -1
    return known[unit] === 1
  }
  return { kind: "set", has }
}

class Parser {
  private readonly source: string
  private readonly isUnicode: boolean
  private at = 0
  private depth = 0

  constructor({ source, unicode }: RegExp) {
    this.source = source
    this.isUnicode = unicode
  }

  whole(): PatternNode {
    return this.options()
  }

  private match(rule: RegExp): RegExpExecArray | undefined {
    rule.lastIndex = this.at
    const found = rule.exec(this.source)
    if (!found) return undefined
    this.at += found[0].length
    return found
  }

  private eat(text: string): boolean {
    if (!this.source.startsWith(text, this.at)) return false
    this.at += text.length
    return true
  }

  private options(): PatternNode {
    if (++this.depth > deepest) throw new PatternRefused(`it is nested deeper than ${deepest}`)
    const options = [this.sequence()]
    while (this.eat("|")) options.push(this.sequence())
    this.depth--
    return options.length === 1 ? options[0]! : { kind: "any", options }
  }

  private sequence(): PatternNode {
    const parts: PatternNode[] = []
    while (this.at < this.source.length && !/[|)]/.test(this.source[this.at]!))
      parts.push(this.repeated(this.atom()))
    return parts.length === 1 ? parts[0]! : { kind: "all", parts }
  }

  private repeated(part: PatternNode): PatternNode {
    const found = this.match(quantifier)
    if (!found) return part
    const [text, least, comma, most] = found
    if (least !== undefined)
      return {
        kind: "repeat",
        part,
        least: Number(least),
        most: comma === "" ? Number(least) : most === "" ? Number.POSITIVE_INFINITY : Number(most),
      }
    return {
      kind: "repeat",
      part,
      least: text.startsWith("+") ? 1 : 0,
      most: text.startsWith("?") ? 1 : Number.POSITIVE_INFINITY,
    }
  }

  private atom(): PatternNode {
    if (this.eat("(")) return this.group()
    if (this.eat("^")) return { kind: "edge", edge: "start" }
    if (this.eat("$")) return { kind: "edge", edge: "end" }
    if (this.source[this.at] === "\\") return this.escape()
    if (this.source[this.at] === "[") return this.charClass()
    if (this.eat(".")) return setOf(".", this.isUnicode)
    const unit = this.isUnicode
      ? this.source.codePointAt(this.at)!
      : this.source.charCodeAt(this.at)
    this.at += unit > 0xffff ? 2 : 1
    return { kind: "set", has: (given) => given === unit }
  }

  private group(): PatternNode {
    const found = this.match(look)
    if (!found && !this.match(noGroup) && this.source[this.at] === "?")
      throw new PatternRefused("a group with flags")
    const part = this.options()
    this.eat(")")
    if (!found) return part
    return { kind: "look", part, isNegated: found[2] === "!", isBehind: found[1] === "<" }
  }

  private escape(): PatternNode {
    const token = this.match(this.isUnicode ? unicodeEscape : plainEscape)![0]
    if (token === "\\b") return { kind: "edge", edge: "word" }
    if (token === "\\B") return { kind: "edge", edge: "noWord" }
    if (/^\\[1-9k]/.test(token)) throw new PatternRefused("a reference to a group")
    if (token === "\\c") throw new PatternRefused("the escape \\c")
    return setOf(token, this.isUnicode)
  }

  private charClass(): PatternNode {
    const start = this.at++
    while (this.source[this.at] !== "]") this.at += this.source[this.at] === "\\" ? 2 : 1
    this.at++
    return setOf(this.source.slice(start, this.at), this.isUnicode)
  }
}

/** Parses a pattern of ECMAScript. Throws `PatternRefused` for what can't be matched so. */
export const patternSyntax = (pattern: string): PatternSyntax => {
  let rule: RegExp
  try {
    rule = ecmaPattern(pattern)
  } catch {
    throw new PatternRefused("it is no regular expression")
  }
  const node = pattern === "" ? nothing : new Parser(rule).whole()
  return { node, isUnicode: rule.unicode }
}
