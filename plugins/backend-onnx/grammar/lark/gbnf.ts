import { broken } from "./tokens.ts"

/** The form of llama.cpp and vLLM's examples: `root ::= "a" | other`. */
export const isGbnf = (text: string): boolean => /^[ \t]*[\w-]+[ \t]*::=/m.test(text)

const pieces =
  /(?<space>[ \t\r]+|#[^\n]*)|(?<newline>\n)|(?<head>[a-zA-Z][\w-]*)(?=[ \t]*::=)|(?<name>[a-zA-Z][\w-]*)|(?<is>::=)|(?<string>"(?:\\[^\n]|[^"\\\n])*")|(?<set>\[\^?(?:\\[^\n]|[^\]\\\n])*\])|(?<sign>[().|*+?]|\{[0-9]*,?[0-9]*\})/uy

const plainEscapes: Readonly<Record<string, string>> = { n: "\n", r: "\r", t: "\t" }
const characters =
  /\\x(?<x>[0-9a-fA-F]{2})|\\u(?<u>[0-9a-fA-F]{4})|\\U(?<U>[0-9a-fA-F]{8})|\\(?<escaped>.)|(?<plain>.)/gu

/** Returns the code points of a string or set; `isRange`: a dash that is not escaped. */
const codesIn = (text: string, line: number) =>
  [...text.matchAll(characters)].map(({ groups = {} }) => {
    const { x, u, U, escaped, plain } = groups
    const hex = x ?? u ?? U
    const code =
      hex === undefined
        ? (plain ?? plainEscapes[escaped!] ?? escaped!).codePointAt(0)!
        : Number.parseInt(hex, 16)
    if (code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
      broken(line, `\\U${code.toString(16)} is no character`)
    return { code, isRange: plain === "-" }
  })

const stringOf = (text: string, line: number): string => {
  const plain = codesIn(text.slice(1, -1), line).map(({ code }) => String.fromCodePoint(code))
  return JSON.stringify(plain.join("")).replaceAll("\u007f", "\\u007f")
}

const setOf = (text: string, line: number): string => {
  const isNegated = text[1] === "^"
  const codes = codesIn(text.slice(isNegated ? 2 : 1, -1), line)
  if (codes.length === 0) return isNegated ? "/(?s:.)/" : broken(line, "a set holds no character")
  const last = codes.length - 1
  const written = codes.map(({ code, isRange }, at) =>
    isRange && at > 0 && at < last ? "-" : `\\x{${code.toString(16)}}`,
  )
  return `/[${isNegated ? "^" : ""}${written.join("")}]/`
}

/** Rules of Lark have names in lower case; the first one is `start`. */
const makeNames = () => {
  const others = new Map<string, string>()
  return (name: string): string => {
    if (name === "root") return "start"
    if (/^[a-z][a-z0-9_-]*$/.test(name) && name !== "start") return name
    const known = others.get(name) ?? `${name.toLowerCase()}-${others.size}`
    others.set(name, known)
    return known
  }
}

/**
 * Writes a grammar in GBNF as Lark, rule by rule on the line where each begins. Throws
 * `LarkRefused`.
 */
export const larkOfGbnf = (text: string): string => {
  const nameOf = makeNames()
  let line = 1
  let skipped = 0
  let written = ""
  for (let at = 0; at < text.length; at = pieces.lastIndex) {
    pieces.lastIndex = at
    const groups = pieces.exec(text)?.groups ?? broken(line, `${text[at]} has no meaning here`)
    if (groups.newline) {
      line++
      skipped++
    } else if (groups.head) {
      written += `${"\n".repeat(skipped)}${nameOf(groups.head)}`
      skipped = 0
    } else if (groups.is) written += ": "
    else if (groups.name) written += `${nameOf(groups.name)} `
    else if (groups.string) written += `${stringOf(groups.string, line)} `
    else if (groups.set) written += `${setOf(groups.set, line)} `
    else if (groups.sign) written += groups.sign === "." ? "/(?s:.)/ " : `${groups.sign} `
  }
  return written
}
