import type { CallSyntax } from "../../chat-format/call-syntax.ts"
import type { AnswerForm } from "../answer-parser.ts"

/** The joined events of a parser. */
export interface WholeAnswer {
  readonly reasoning: string
  readonly text: string
  readonly calls: readonly { readonly name: string; readonly arguments: string }[]
}

const escaped = (text: string): string => text.replaceAll(/[\\^$.*+?()[\]{}|/]/g, "\\$&")

/** A regular expression for the pieces one after the other, with white space before each. */
const inOrder = (pieces: readonly string[]): string =>
  pieces.map((piece) => `\\s*${piece}`).join("")

/** The same, for texts that end anywhere before the last piece is whole. */
const begunInOrder = (pieces: readonly (readonly [whole: string, begun: string])[]): string =>
  pieces.reduceRight(
    (rest, [whole, begun]) => `\\s*(?:$|${begun}$|${whole}${rest && `(?:${rest})`})`,
    "",
  )

const begunText = (text: string): string =>
  Array.from(text, (_, length) => escaped(text.slice(0, length)))
    .reverse()
    .join("|")

const pieceOf = (text: string): readonly [string, string] => [
  escaped(text),
  `(?:${begunText(text)})`,
]

const anyName = '"(?:[^"\\\\]|\\\\[\\s\\S])*"'
const begunName = '"(?:[^"\\\\]|\\\\[\\s\\S]?)*'

const itemPieces = ({ argumentsKey }: CallSyntax) => [
  pieceOf("{"),
  pieceOf('"name"'),
  pieceOf(":"),
  [anyName, begunName] as const,
  pieceOf(","),
  pieceOf(`"${argumentsKey}"`),
  pieceOf(":"),
  pieceOf("{"),
]

interface Found {
  readonly name: string
  readonly at: number
}

/** The reference parser: parses the whole text at once with regular expressions. */
class WholeText {
  private readonly form: AnswerForm
  private readonly isCut: boolean
  private readonly calls: { name: string; arguments: string }[] = []
  private text = ""

  constructor(form: AnswerForm, isCut: boolean) {
    this.form = form
    this.isCut = isCut
  }

  parse(all: string): WholeAnswer {
    const { reasoning, rest } = this.reasoning(all)
    this.content(rest)
    return { reasoning, text: this.text, calls: this.calls }
  }

  private reasoning(all: string): { readonly reasoning: string; readonly rest: string } {
    const { reasoning } = this.form
    const opened =
      reasoning === "begun"
        ? 0
        : reasoning === "possible"
          ? (/^\s*<think>/.exec(all)?.[0].length ?? -1)
          : -1
    if (opened < 0) return { reasoning: "", rest: all }
    const [inside, ...behind] = all.slice(opened).split("</think>")
    if (!behind.length) return { reasoning: inside!.trimStart(), rest: "" }
    return { reasoning: inside!.trim(), rest: behind.join("</think>").trimStart() }
  }

  private content(rest: string): void {
    const { calls } = this.form
    if (!calls) {
      this.text = rest
      return
    }
    const { trigger, prefix } = calls.syntax
    const first =
      trigger === undefined
        ? [...(prefix === undefined ? [] : [`(?:${escaped(prefix)})?`])]
        : [escaped(trigger)]
    let from = 0
    for (;;) {
      const at = trigger === undefined ? 0 : rest.indexOf(trigger, from)
      if (at < 0 || (trigger === undefined && from > 0)) break
      const head = this.head(rest, at, [...first, ...this.open()])
      if (head) {
        this.text += rest.slice(from, at).trimEnd()
        const after = this.group(rest, head)
        if (after === undefined) return
        from = after
      } else if (
        this.isBegun(rest.slice(at), this.begunHead()) &&
        this.dropsBegun(rest.slice(at))
      ) {
        this.text += rest.slice(from, at).trimEnd()
        return
      } else if (trigger === undefined) break
      else {
        this.text += rest.slice(from, at + trigger.length)
        from = at + trigger.length
      }
    }
    const tail = rest.slice(from)
    this.text += this.isCut && calls.only ? this.withoutBegun(tail, trigger) : tail
  }

  private dropsBegun(head: string): boolean {
    const { calls } = this.form
    return (
      this.isCut &&
      (calls?.only === true || calls?.syntax.trigger !== undefined || head.trim() !== "")
    )
  }

  /** Returns the text without an unfinished trigger at its end. */
  private withoutBegun(tail: string, trigger: string | undefined): string {
    if (trigger === undefined) return tail
    return tail.replace(new RegExp(`\\s*(?:${begunText(trigger)})$`), "")
  }

  private open(): readonly string[] {
    const open = this.form.calls!.syntax.open.trim()
    return open ? [escaped(open)] : []
  }

  private begunHead(): string {
    const { syntax } = this.form.calls!
    const open = syntax.open.trim()
    const inner = [...(open ? [pieceOf(open)] : []), ...itemPieces(syntax)]
    if (syntax.trigger !== undefined) return begunInOrder([pieceOf(syntax.trigger), ...inner])
    return syntax.prefix === undefined
      ? begunInOrder(inner)
      : `(?:${begunInOrder([pieceOf(syntax.prefix), ...inner])}|${begunInOrder(inner)})`
  }

  private isBegun(text: string, pattern: string): boolean {
    if (text.trimStart().length > 1_000 || !new RegExp(`^${pattern}$`).test(text)) return false
    // a name that is whole must be one of the tools
    const name = /"name"\s*:\s*("(?:[^"\\]|\\[\s\S])*")/.exec(text)?.[1]
    return name === undefined || this.form.calls!.tools.has(name.slice(1, -1))
  }

  private head(rest: string, at: number, before: readonly string[]): Found | undefined {
    const { syntax, tools } = this.form.calls!
    const names = [...tools].map(escaped).join("|")
    const pattern = inOrder([
      ...before,
      "\\{",
      '"name"',
      ":",
      `"(${names})"`,
      ",",
      `"${syntax.argumentsKey}"`,
      ":",
      "(?=\\{)",
    ])
    const found = new RegExp(pattern, "y")
    found.lastIndex = at
    const match = found.exec(rest)
    if (!match || match[0].trimStart().length > 1_000) return undefined
    return { name: match[1]!, at: found.lastIndex }
  }

  /**
   * Parses all calls of a group. Returns the index behind it, undefined when the text ends in it.
   */
  private group(rest: string, first: Found): number | undefined {
    const { separator, close } = this.form.calls!.syntax
    const closing = inOrder(close.split(/\s+/).filter(Boolean).map(escaped))
    let head = first
    for (;;) {
      const end = objectEnd(rest, head.at)
      this.calls.push({ name: head.name, arguments: rest.slice(head.at, end) })
      const behind = rest.slice(end)
      if (
        new RegExp(
          `^${begunInOrder([pieceOf("}"), ...close.split(/\s+/).filter(Boolean).map(pieceOf)])}$`,
        ).test(behind) ||
        /^\s*\}?\s*$/.test(behind)
      )
        return undefined
      const brace = /^\s*\}/.exec(behind)?.[0].length
      if (brace === undefined) return end
      const separated =
        separator !== undefined && behind.slice(brace).trimStart().startsWith(separator.trim())
      if (!separated) {
        const closed = new RegExp(`^${closing}`).exec(behind.slice(brace))?.[0].length
        if (closed === undefined) return end
        const next = end + brace + closed
        return rest.length - rest.slice(next).trimStart().length
      }
      const at = end + brace
      const next = this.head(rest, at, [escaped(separator.trim())])
      if (!next)
        return this.isCut &&
          this.isBegun(
            rest.slice(at),
            begunInOrder([pieceOf(separator.trim()), ...itemPieces(this.form.calls!.syntax)]),
          )
          ? undefined
          : at
      head = next
    }
  }
}

/** Returns the index behind the brace that closes the one at `from`. */
const objectEnd = (text: string, from: number): number => {
  let depth = 0
  const parts = /"(?:[^"\\]|\\[\s\S])*(?:"|\\?$)|[{}[\]]/g
  parts.lastIndex = from
  for (let part = parts.exec(text); part; part = parts.exec(text)) {
    if (part[0] === "{" || part[0] === "[") depth++
    else if (part[0] === "}" || part[0] === "]") depth--
    if (depth === 0 && /[}\]]/.test(part[0][0]!)) return parts.lastIndex
  }
  return text.length
}

export const wholeAnswer = (form: AnswerForm, text: string, isCut: boolean): WholeAnswer =>
  new WholeText(form, isCut).parse(text)
