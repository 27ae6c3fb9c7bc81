import type { Json } from "../../../../core/json.ts"
import { SchemaInvalid } from "../schema/reading.ts"
import { tooManyWays } from "../schema/ways.ts"
import { analyseSchema } from "../schema-report.ts"
import { isGbnf, larkOfGbnf } from "./gbnf.ts"
import {
  type LarkItem,
  type LarkNode,
  nestedNegation,
  type ParsedLark,
  parseLark,
} from "./parser.ts"
import { beyond, broken, type LarkToken, objectOf } from "./tokens.ts"

const namesIn = (node: LarkNode): readonly { readonly name: string; readonly line: number }[] => {
  if ("name" in node) return [node]
  return ("all" in node ? node.all : node.any).flatMap(namesIn)
}

const ends = (node: LarkNode, ending: ReadonlySet<string>): boolean => {
  if ("name" in node) return ending.has(node.name)
  return "all" in node
    ? node.all.every((inner) => ends(inner, ending))
    : node.any.some((inner) => ends(inner, ending))
}

/**
 * Refuses what intersects patterns in a roundabout way (`~(~a | ~b)`): compiling that has no bound
 * in time.
 */
const refuseNestedNegation = ({ items, negated }: ParsedLark): void => {
  const seen = new Set<string>()
  for (const { name: first, line } of negated) {
    const waiting = [first]
    for (let name = waiting.pop(); name !== undefined; name = waiting.pop()) {
      if (seen.has(name)) continue
      seen.add(name)
      const item = items.get(name)
      if (item?.isCombined) beyond(line, nestedNegation)
      for (const inner of item ? namesIn(item.node) : []) waiting.push(inner.name)
    }
  }
}

/** Refuses rules that only lead to themselves: an answer that enters one could never end. */
const refuseEndless = (items: ReadonlyMap<string, LarkItem>): void => {
  const ending = new Set<string>()
  let waiting = [...items]
  for (let before = -1; before !== ending.size; ) {
    before = ending.size
    for (const [name, { node }] of waiting) if (ends(node, ending)) ending.add(name)
    waiting = waiting.filter(([name]) => !ending.has(name))
  }
  const [first] = waiting
  if (first) broken(first[1].line, `${first[0]} never ends, as it always needs itself again`)
}

/** Returns the schema in the subset that llguidance enforces exactly. */
const enforcedIn = (token: LarkToken): Json => {
  const { line } = token
  try {
    const { refused, enforced, guards } = analyseSchema(objectOf(token) as Json)
    if (refused) {
      const { keyword, path, reason = "" } = refused
      beyond(line, `the keyword "${keyword}" at ${path} can't be kept: ${reason}`)
    }
    const [guarded] = guards?.keywords.keys() ?? []
    if (guarded !== undefined)
      beyond(line, `what the schema asks for at "${guarded}" is kept only in a json_schema format`)
    if (!enforced) return broken(line, "no document satisfies the schema")
    const tooMany = tooManyWays(enforced)
    return tooMany === undefined ? enforced : beyond(line, tooMany)
  } catch (cause) {
    if (!(cause instanceof SchemaInvalid)) throw cause
    return broken(line, `the schema is no JSON Schema at ${cause.path}: ${cause.message}`)
  }
}

/** Tokens apart, on the lines where they were. */
const writtenToken = (token: LarkToken): string => {
  if (token.kind === "newline") return "\n"
  if (token.kind !== "json") return `${token.text} `
  return `${"\n".repeat(token.text.split("\n").length - 1)}${JSON.stringify(enforcedIn(token))} `
}

/**
 * Reads a grammar in Lark (or GBNF) as a request may have it, and writes it anew for llguidance from what was
 * understood: schemas behind `%json` in the subset that is enforced exactly, and nothing of what
 * reaches past the text of the answer. Throws `LarkRefused`.
 */
export const readLark = (text: string): string => {
  const parsed = parseLark(isGbnf(text) ? larkOfGbnf(text) : text)
  const { tokens, items, ignored } = parsed
  if (!items.has("start")) broken(1, "there is no rule named start")
  for (const { name, line } of [...[...items.values()].map(({ node }) => node), ...ignored].flatMap(
    namesIn,
  ))
    if (!items.has(name)) broken(line, `${name} is not defined`)
  refuseNestedNegation(parsed)
  refuseEndless(items)
  return tokens
    .filter(({ text: own }, at) => own !== "%llguidance" && tokens[at - 1]?.text !== "%llguidance")
    .map(writtenToken)
    .join("")
}
