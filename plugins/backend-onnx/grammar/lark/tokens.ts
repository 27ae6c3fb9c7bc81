/** A grammar that can't be used. `isBroken`: it is no grammar; otherwise it asks for too much. */
export class LarkRefused extends Error {
  override readonly name = "LarkRefused"
  readonly isBroken: boolean

  constructor(line: number, what: string, isBroken: boolean) {
    // names may be as long as the grammar
    super(`line ${line}: ${what}`.slice(0, 300))
    this.isBroken = isBroken
  }
}

export const broken = (line: number, what: string): never => {
  throw new LarkRefused(line, what, true)
}

export const beyond = (line: number, what: string): never => {
  throw new LarkRefused(line, what, false)
}

export interface LarkToken {
  readonly kind: keyof typeof kinds | "json" | "end"
  readonly text: string
  readonly line: number
}

/** As llguidance reads them, so that both see the same tokens; the longest match counts. */
const kinds = {
  space: /[ \t]+|(?:#|\/\/)[^\n]*/uy,
  newline: /\r?\n/uy,
  directive: /%[a-zA-Z]*/uy,
  rule: /!?[_?]?[a-z][_a-z0-9-]*/uy,
  terminal: /_?[A-Z][_A-Z0-9-]*/uy,
  string:
    // biome-ignore lint/suspicious/noControlCharactersInRegex: those must be escaped
    /"(?:\\(?:["\\/bfnrt]|u[a-fA-F0-9]{4}|x[a-fA-F0-9]{2})|[^"\\\u0000-\u001f\u007f])*"i?/uy,
  pattern: /\/(?:\\[^\n]|[^/\\\n])+\/[imslux]*/uy,
  number: /[+-]?[0-9]+/uy,
  operator: /[+*?]/uy,
  special: /<[^<>\s]+>/uy,
  reference: /@[a-zA-Z0-9_-]*/uy,
  sign: /->|::|\.\.|[:,.(){}[\]~|&=]/uy,
} as const

const kindNames = Object.keys(kinds) as readonly (keyof typeof kinds)[]

const tokenAt = (text: string, at: number, line: number): LarkToken => {
  let longest: LarkToken | undefined
  for (const kind of kindNames) {
    const rule = kinds[kind]
    rule.lastIndex = at
    const found = rule.exec(text)?.[0]
    if (found && found.length > (longest?.text.length ?? 0)) longest = { kind, text: found, line }
  }
  return longest ?? broken(line, unreadable(text.slice(at)))
}

const unreadable = (rest: string): string => {
  const [first = ""] = rest
  if (first === '"') return "a string is not closed, or has an escape that JSON does not know"
  if (first === "/") return "a pattern is not closed on its line"
  return `${JSON.stringify(first)} has no meaning here`
}

const parts = /"(?:[^"\\]|\\[\s\S])*"|[{}]/g

/** Returns the end of the object that begins at `from`, after white space. */
const objectEnd = (text: string, from: number, line: number): number => {
  if (!/^\s*\{/.test(text.slice(from, from + 1_000)))
    broken(line, "an object in JSON has to follow")
  let depth = 0
  parts.lastIndex = from
  for (let found = parts.exec(text); found; found = parts.exec(text)) {
    if (found[0] === "{") depth++
    if (found[0] === "}" && --depth === 0) return parts.lastIndex
  }
  return broken(line, "the object in JSON is not closed")
}

const withJson: readonly string[] = ["%json", "%llguidance", "%regex"]

const linesIn = (text: string): number => text.split("\n").length - 1

/** Returns the tokens of a grammar, without white space and comments. Throws `LarkRefused`. */
export const larkTokens = (text: string): readonly LarkToken[] => {
  const tokens: LarkToken[] = []
  let line = 1
  for (let at = 0; at < text.length; ) {
    const token = tokenAt(text, at, line)
    at += token.text.length
    if (token.kind !== "space") tokens.push(token)
    line += linesIn(token.text)
    if (!withJson.includes(token.text)) continue
    const end = objectEnd(text, at, line)
    const json = text.slice(at, end)
    tokens.push({ kind: "json", text: json, line })
    line += linesIn(json)
    at = end
  }
  return [...tokens, { kind: "end", text: "", line }]
}

/** Reads the object behind `%json` or `%llguidance`. */
export const objectOf = ({ text, line }: LarkToken): Readonly<Record<string, unknown>> => {
  try {
    return JSON.parse(text) as Readonly<Record<string, unknown>>
  } catch (cause) {
    return broken(line, `it is not JSON: ${(cause as Error).message}`)
  }
}
