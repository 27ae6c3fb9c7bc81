import {
  anyChar,
  type CharSet,
  charsOfProperty,
  digits,
  lineEnds,
  negated,
  spaces,
  union,
  wordChars,
} from "./char-set.ts"

/** A pattern that can't be enforced; the message names the part. */
export class PatternRefused extends Error {
  override readonly name = "PatternRefused"
}

export const refuse = (what: string): never => {
  throw new PatternRefused(what)
}

export type PatternNode =
  | { readonly kind: "set"; readonly set: CharSet }
  | { readonly kind: "concat" | "or"; readonly parts: readonly PatternNode[] }
  | {
      readonly kind: "repeat"
      readonly of: PatternNode
      readonly least: number
      readonly most: number
    }
  | { readonly kind: "start" | "end" }
  | { readonly kind: "boundary"; readonly isNegated: boolean }
  | {
      readonly kind: "ahead" | "behind"
      readonly of: PatternNode
      readonly isNegated: boolean
    }
  /** What no automaton reads: `\1`. */
  | { readonly kind: "reference" }

const classes: Readonly<Record<string, CharSet>> = { d: digits, w: wordChars, s: spaces }
const controls: Readonly<Record<string, number>> = { t: 9, n: 10, v: 11, f: 12, r: 13, 0: 0 }
const mostRepeats = 10_000
const looks = { "=": false, "!": true } as const

const charNode = (code: number): PatternNode => ({ kind: "set", set: [code, code] })

/** The characters of each are searched among all, which takes tens of milliseconds. */
export const mostProperties = 40

/** Returns the properties that a pattern names, such as `{L}` of `\p{L}`. */
export const propertiesIn = (pattern: string): ReadonlySet<string> =>
  new Set(Array.from(pattern.matchAll(/\\[pP](\{[\w=]+\})/g), ([, property]) => property!))

/** Parses an ECMAScript pattern. Throws `PatternRefused`. */
export const parsePattern = (pattern: string): PatternNode =>
  propertiesIn(pattern).size > mostProperties
    ? refuse(`more than ${mostProperties} Unicode properties`)
    : new Parser(pattern).whole()

class Parser {
  private readonly source: string
  private at = 0

  constructor(source: string) {
    this.source = source
  }

  whole(): PatternNode {
    const node = this.alternatives()
    if (this.at < this.source.length) refuse("its parentheses don't match")
    return node
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

  private alternatives(): PatternNode {
    const parts = [this.alternative()]
    while (this.eat("|")) parts.push(this.alternative())
    return parts.length === 1 ? parts[0]! : { kind: "or", parts }
  }

  private alternative(): PatternNode {
    const parts: PatternNode[] = []
    while (this.at < this.source.length && !/[|)]/.test(this.source[this.at]!))
      parts.push(this.term())
    return parts.length === 1 ? parts[0]! : { kind: "concat", parts }
  }

  private term(): PatternNode {
    if (this.eat("^")) return { kind: "start" }
    if (this.eat("$")) return { kind: "end" }
    const of = this.atom()
    const found = this.match(/(?:[*+?]|\{(\d+)(,(\d*))?\})\??/y)
    if (!found) return of
    if (["ahead", "behind", "boundary"].includes(of.kind)) refuse("a repeated lookaround")
    const sign = found[0][0]!
    const least = found[1] === undefined ? Number(sign === "+") : Number(found[1])
    const most =
      found[1] === undefined
        ? sign === "?"
          ? 1
          : Number.POSITIVE_INFINITY
        : found[2] === undefined
          ? least
          : Number(found[3] || Number.POSITIVE_INFINITY)
    if (least > mostRepeats || (most > mostRepeats && most < Number.POSITIVE_INFINITY))
      refuse(`more than ${mostRepeats} repetitions`)
    return { kind: "repeat", of, least, most }
  }

  private atom(): PatternNode {
    if (this.eat("(")) return this.parenthesis()
    if (this.eat("[")) return { kind: "set", set: this.charClass() }
    if (this.eat(".")) return { kind: "set", set: negated(lineEnds) }
    if (this.eat("\\")) return this.escaped()
    if (/[*+?]/.test(this.source[this.at]!)) refuse("a quantifier with nothing before it")
    return charNode(this.scalar(this.nextChar()))
  }

  private escaped(): PatternNode {
    const boundary = this.match(/[bB]/y)?.[0]
    if (boundary) return { kind: "boundary", isNegated: boundary === "B" }
    if (this.match(/[1-9]\d*|k<[^>]*>/y)) return { kind: "reference" }
    return { kind: "set", set: this.escape() }
  }

  private nextChar(): number {
    const code = this.source.codePointAt(this.at)!
    this.at += code > 0xffff ? 2 : 1
    return code
  }

  private parenthesis(): PatternNode {
    const look = this.match(/\?(<?)([=!])/y)
    if (
      !look &&
      !this.eat("?:") &&
      !this.match(/\?<[\p{ID_Start}$_][\p{ID_Continue}$]*>/uy) &&
      this.source[this.at] === "?"
    )
      refuse("a group with flags")
    const of = this.alternatives()
    if (!this.eat(")")) refuse("its parentheses don't match")
    if (!look) return of
    const isNegated = looks[look[2] as keyof typeof looks]
    return { kind: look[1] === "" ? "ahead" : "behind", of, isNegated }
  }

  /** Parses what stands behind a backslash, in a class or outside. */
  private escape(): CharSet {
    const set = this.match(/[dwsDWS]/y)?.[0]
    if (set) {
      const named = classes[set.toLowerCase()]!
      return set === set.toLowerCase() ? named : negated(named)
    }
    const property = this.match(/([pP])(\{[\w=]+\})/y)
    if (property) {
      const named = charsOfProperty(property[2]!) ?? refuse(`the property ${property[2]}`)
      return property[1] === "p" ? named : negated(named)
    }
    const code = this.escapedChar()
    return [code, code]
  }

  private escapedChar(): number {
    const pair = this.match(/u([dD][89abAB][\da-fA-F]{2})\\u([dD][c-fC-F][\da-fA-F]{2})/y)
    if (pair)
      return String.fromCharCode(
        Number.parseInt(pair[1]!, 16),
        Number.parseInt(pair[2]!, 16),
      ).codePointAt(0)!
    const hex = this.match(/x([\da-fA-F]{2})|u([\da-fA-F]{4})|u\{([\da-fA-F]+)\}/y)
    if (hex) return this.scalar(Number.parseInt(hex[1] ?? hex[2] ?? hex[3]!, 16))
    const control = this.match(/c([a-zA-Z])/y)
    if (control) return control[1]!.charCodeAt(0) % 32
    const plain = this.match(/[tnvfr]|0(?!\d)/y)?.[0]
    if (plain) return controls[plain]!
    // letters that mean themselves in the older mode only
    if (/[ck0-9pPux]|^$/.test(this.source[this.at] ?? ""))
      refuse(`the escape \\${this.source[this.at] ?? ""}`)
    return this.nextChar()
  }

  private scalar(code: number): number {
    return code <= 0x10ffff && (code < 0xd800 || code > 0xdfff)
      ? code
      : refuse("half of a surrogate pair")
  }

  private charClass(): CharSet {
    const isNegated = this.eat("^")
    const parts: CharSet[] = []
    while (!this.eat("]")) {
      if (this.at >= this.source.length) refuse("its brackets don't match")
      const from = this.classItem()
      if (!/^-[^\]]/.test(this.source.slice(this.at, this.at + 2))) parts.push(from)
      else {
        this.at++
        const to = this.classItem()
        const isRange = [from, to].every((item) => item.length === 2 && item[0] === item[1])
        if (!isRange) parts.push(from, [0x2d, 0x2d], to)
        else if (from[0]! > to[0]!) refuse("a range in the wrong order")
        else parts.push([from[0]!, to[0]!])
      }
    }
    const set = union(parts)
    return isNegated ? negated(set) : set
  }

  private classItem(): CharSet {
    if (!this.eat("\\")) {
      const code = this.scalar(this.nextChar())
      return [code, code]
    }
    return this.eat("b") ? [8, 8] : this.escape()
  }
}

/** The set that a pattern of one character stands for. */
export const singleChar = (node: PatternNode): CharSet | undefined => {
  if (node.kind === "set") return node.set
  if (node.kind !== "or") return undefined
  const sets = node.parts.map(singleChar)
  return sets.every((set) => set !== undefined) ? union(sets as readonly CharSet[]) : undefined
}

export const anyText: PatternNode = {
  kind: "repeat",
  of: { kind: "set", set: anyChar },
  least: 0,
  most: Number.POSITIVE_INFINITY,
}
