import { repeatsIn } from "../thread-choice.ts"
import { beyond, broken, type LarkToken, larkTokens, objectOf } from "./tokens.ts"

/** What a rule is made of, as far as it matters for whether it ends. */
export type LarkNode =
  | { readonly all: readonly LarkNode[] }
  | { readonly any: readonly LarkNode[] }
  | { readonly name: string; readonly line: number }

export interface LarkItem {
  readonly node: LarkNode
  readonly line: number
  /** Whether it is made with `&` or `~`. */
  readonly isCombined: boolean
}

type LarkName = Extract<LarkNode, { readonly name: string }>

export interface ParsedLark {
  readonly tokens: readonly LarkToken[]
  /** Rules and terminals. */
  readonly items: ReadonlyMap<string, LarkItem>
  /** What is used where nothing is defined, as in `%ignore`. */
  readonly ignored: readonly LarkNode[]
  /** Names behind `~`. */
  readonly negated: readonly LarkName[]
}

const anything: LarkNode = { all: [] }
const optional = (node: LarkNode): LarkNode => ({ any: [anything, node] })
const mostItems = 1_000
const mostLevels = 25
const mostRepeats = 10_000

/** What llguidance could do, and a request may not ask for. */
const refusedDirectives: Readonly<Record<string, string>> = {
  "%regex": "%regex is not supported; use a pattern",
  "%lark": "nested grammars (%lark) are not supported",
  "%if": "conditions (%if) are not supported",
  "%declare": "%declare is not supported, as nothing else defines terminals",
  "%override": "%override is not supported",
}

export const nestedNegation = "~ of what has & or ~ itself is not supported"

const refusedAttributes = ["capture", "max_tokens", "stop", "stop_capture", "temperature"]

class Parser {
  private readonly tokens: readonly LarkToken[]
  private at = 0
  private levels = 0
  private readonly items = new Map<string, LarkItem>()
  private readonly ignored: LarkNode[] = []
  private readonly negated: LarkName[] = []
  private isNegated = false
  private isCombined = false

  constructor(text: string) {
    this.tokens = larkTokens(text)
  }

  parse(): ParsedLark {
    for (this.newlines(); !this.isAt("end"); this.newlines()) {
      this.item()
      if (!this.isAt("newline") && !this.isAt("end")) this.unexpected("a new line")
    }
    const { tokens, items, ignored, negated } = this
    return { tokens, items, ignored, negated }
  }

  private get next(): LarkToken {
    return this.tokens[this.at]!
  }

  private isAt(kind: LarkToken["kind"]): boolean {
    return this.next.kind === kind
  }

  private take(): LarkToken {
    return this.tokens[this.at++]!
  }

  private eat(sign: string): boolean {
    if (this.next.kind !== "sign" || this.next.text !== sign) return false
    this.at++
    return true
  }

  private expect(sign: string): void {
    if (!this.eat(sign)) this.unexpected(`"${sign}"`)
  }

  private unexpected(wanted: string): never {
    const { kind, text, line } = this.next
    if (kind === "directive" && Object.hasOwn(refusedDirectives, text))
      return beyond(line, refusedDirectives[text]!)
    if (text === "::") return beyond(line, "rules with parameters (::) are not supported")
    const found = kind === "end" || kind === "newline" ? "the end of the line" : text
    return broken(line, `${wanted} is expected, not ${found}`)
  }

  private newlines(): void {
    while (this.next.kind === "newline") this.at++
  }

  private item(): void {
    const { kind, text, line } = this.next
    if (kind === "directive") {
      this.statement()
      return
    }
    if (kind !== "rule" && kind !== "terminal") this.unexpected("a rule, a terminal or a directive")
    this.at++
    if (this.next.text === ".") beyond(line, "priorities are not supported")
    if (this.next.text === "{") beyond(line, "templates are not supported")
    if (kind === "rule" && this.eat("[")) this.attributes()
    this.expect(":")
    this.isCombined = false
    const node = this.alternatives()
    this.define(text.replace(/^!?\??/, ""), { node, line, isCombined: this.isCombined })
  }

  private define(name: string, item: LarkItem): void {
    if (this.items.has(name)) broken(item.line, `${name} is defined twice`)
    if (this.items.size === mostItems)
      beyond(item.line, `more than ${mostItems} rules and terminals`)
    this.items.set(name, item)
  }

  private attributes(): void {
    do {
      const { text, line } = this.take()
      if (refusedAttributes.includes(text)) beyond(line, `the attribute ${text} is not supported`)
      if (text === "suffix") {
        this.expect("=")
        this.value()
      } else if (text !== "lazy") broken(line, `${text || "nothing"} is no attribute of a rule`)
    } while (this.eat(","))
    this.expect("]")
  }

  private statement(): void {
    const { text, line } = this.take()
    if (text === "%ignore") this.ignored.push(this.alternatives())
    else if (text === "%import") this.import(line)
    else if (text === "%llguidance") {
      const options = objectOf(this.take())
      const [option] = Object.keys(options)
      if (option !== undefined) beyond(line, `the option ${option} of %llguidance is not supported`)
    } else {
      this.at--
      this.unexpected("a rule, a terminal or a directive")
    }
  }

  private name(): string {
    const { kind, text } = this.next
    if (kind !== "rule" && kind !== "terminal") this.unexpected("a name")
    this.at++
    return text
  }

  private import(line: number): void {
    const path = [this.name()]
    while (this.eat(".")) path.push(this.name())
    if (path[0] !== "common") beyond(line, `only terminals of "common" can be imported`)
    const terminal = { node: anything, line, isCombined: false }
    if (this.eat("(")) {
      do this.define(this.name(), terminal)
      while (this.eat(","))
      this.expect(")")
    } else this.define(this.eat("->") ? this.name() : path.at(-1)!, terminal)
  }

  private alternatives(): LarkNode {
    if (++this.levels > mostLevels)
      beyond(this.next.line, `groups are nested more than ${mostLevels} deep`)
    const any = [this.alternative()]
    while (this.bar()) any.push(this.alternative())
    this.levels--
    return any.length === 1 ? any[0]! : { any }
  }

  /** An alternative may begin on a new line. */
  private bar(): boolean {
    const before = this.at
    this.newlines()
    if (this.eat("|")) return true
    this.at = before
    return false
  }

  private alternative(): LarkNode {
    const { line } = this.next
    const all: LarkNode[] = []
    let plain = 0
    do plain += this.sequence(all) ? 0 : 1
    while (this.combines("&"))
    if (plain > 1) beyond(line, "& is supported where all but one of its sides begin with ~")
    if (this.eat("->")) this.name()
    return { all }
  }

  /** Whether it is nothing but a negation. */
  private sequence(all: LarkNode[]): boolean {
    const begins = this.next.text === "~"
    const before = all.length
    while (!this.isAtEndOfSequence()) all.push(this.expression())
    return begins && all.length === before + 1
  }

  private combines(sign: "&" | "~"): boolean {
    const { line } = this.next
    if (!this.eat(sign)) return false
    if (this.isNegated) beyond(line, nestedNegation)
    this.isCombined = true
    return true
  }

  private isAtEndOfSequence(): boolean {
    const { kind, text } = this.next
    return (
      kind === "newline" ||
      kind === "end" ||
      (kind === "sign" && ["|", "->", ")", "]", "}", "&"].includes(text))
    )
  }

  private expression(): LarkNode {
    const isNegation = this.combines("~")
    if (isNegation) this.isNegated = true
    const atom = this.atom()
    if (isNegation) this.isNegated = false
    if (this.next.kind === "operator") return this.take().text === "+" ? atom : optional(atom)
    return this.repeatedFrom() === 0 || isNegation ? optional(atom) : atom
  }

  /** Returns how often the atom has to be there. */
  private repeatedFrom(): number {
    if (this.eat("~")) {
      const least = this.count()
      if (this.eat("..")) this.count()
      return least
    }
    if (!this.eat("{")) return 1
    const least = this.next.text === "," ? 0 : this.count()
    if (this.eat(",") && this.next.kind === "number") this.count()
    this.expect("}")
    return least
  }

  private count(): number {
    const { kind, text, line } = this.next
    if (kind !== "number") this.unexpected("a number")
    this.at++
    if (Number(text) < 0) broken(line, "a number of repetitions is not negative")
    if (Number(text) > mostRepeats) beyond(line, `more than ${mostRepeats} repetitions`)
    return Number(text)
  }

  private atom(): LarkNode {
    if (this.eat("(")) {
      const inner = this.alternatives()
      this.expect(")")
      return inner
    }
    if (!this.eat("[")) return this.value()
    const inner = this.alternatives()
    this.expect("]")
    return optional(inner)
  }

  private value(): LarkNode {
    const { kind, text, line } = this.next
    if (kind === "special")
      beyond(line, `tokens by their name or number (${text}) are not supported`)
    if (kind === "reference") beyond(line, `other grammars (${text}) can't be referred to`)
    if (kind === "pattern" && repeatsIn(text) > mostRepeats)
      beyond(line, `repetitions in a pattern that multiply to more than ${mostRepeats}`)
    const isJson = kind === "directive" && text === "%json"
    if (!isJson && !["rule", "terminal", "string", "pattern"].includes(kind))
      this.unexpected("a name, a string, a pattern or a group")
    this.at++
    if (isJson) this.at++
    if (kind === "string" && this.eat("..")) {
      if (this.next.kind !== "string") this.unexpected("a string")
      this.at++
    }
    if (kind !== "rule" && kind !== "terminal") return anything
    const name = { name: text, line }
    if (this.isNegated) this.negated.push(name)
    return name
  }
}

/** Parses a grammar in Lark. Throws `LarkRefused`. */
export const parseLark = (text: string): ParsedLark => new Parser(text).parse()
