import type { Json } from "../../../../../core/json.ts"
import { anyNumber } from "../numbers.ts"
import { allOf, anyOf, type EnforcedSchema } from "../reading.ts"
import { everyKind, inBoth, type Kind, type Kinds, kindOfValue, kindsOfType } from "./known.ts"

/** A value of the kinds, and of no other. A grammar does not distinguish numbers with a fraction from whole ones. */
export const ofKinds = (kinds: Kinds): EnforcedSchema => {
  const types = new Set([...kinds].map((kind) => (kind === "fraction" ? "number" : kind)))
  if (types.has("number")) types.delete("integer")
  if (types.size === 6) return true
  return anyOf(
    [...types].map((type) =>
      type === "number" || type === "integer" ? anyNumber(type) : { type },
    ),
  )
}

/** Any of the options, or anything at all where one of them is that. */
export const union = (options: readonly EnforcedSchema[]): EnforcedSchema => {
  if (options.includes(true)) return true
  const flat = options.flatMap((option) =>
    typeof option === "object" && Array.isArray(option.anyOf) && Object.keys(option).length === 1
      ? (option.anyOf as EnforcedSchema[])
      : [option],
  )
  return anyOf([...new Map(flat.map((option) => [JSON.stringify(option), option])).values()])
}

interface Trie {
  isEnd: boolean
  readonly next: Map<string, Trie>
}

const trieOf = (texts: readonly string[]): Trie => {
  const root: Trie = { isEnd: false, next: new Map() }
  for (const text of texts) {
    let node = root
    for (const char of text) {
      const known = node.next.get(char) ?? { isEnd: false, next: new Map() }
      node.next.set(char, known)
      node = known
    }
    node.isEnd = true
  }
  return root
}

const written = (char: string): string =>
  /[0-9A-Za-z]/.test(char) ? char : `\\x{${char.codePointAt(0)!.toString(16)}}`

/**
 * Longer texts are left out with all that begins as they do, which keeps expressions small; deeper
 * ones as well, as expressions nest only so far.
 */
const longestChain = 100
const deepestFork = 40

/** The rest of a text that leads to no end of the trie. */
const beside = (trie: Trie, depth: number): string => {
  const options: string[] = []
  let common = ""
  let node = trie
  for (let step = 0; node.next.size === 1 && step <= longestChain; step++) {
    const [char, after] = [...node.next][0]!
    const other = `[^${written(char)}](?s:.*)`
    options.push(common + (node.isEnd ? other : `(?:${other})?`))
    common += written(char)
    node = after
  }
  if (node.next.size !== 1 && depth <= deepestFork) {
    const forks = [...node.next].map(([char, after]) => written(char) + beside(after, depth + 1))
    const others = [...node.next.keys()].map(written).join("")
    options.push(
      ...(node.isEnd ? [] : [common]),
      `${common}${others === "" ? "(?s:.)" : `[^${others}]`}(?s:.*)`,
      ...(forks.length > 0 ? [`${common}(?:${forks.join("|")})`] : []),
    )
  }
  return `(?:${options.join("|")})`
}

/** A text other than these. */
export const exceptTexts = (texts: readonly string[]): EnforcedSchema =>
  texts.length === 0
    ? { type: "string" }
    : { type: "string", pattern: `^${beside(trieOf(texts), 0)}$` }

/** The open ranges between numbers. */
export const between = (
  numbers: readonly number[],
): readonly { readonly exclusiveMinimum?: number; readonly exclusiveMaximum?: number }[] => {
  const bounds = [...new Set(numbers)].sort((a, b) => a - b)
  return [undefined, ...bounds].map((low, i) => ({
    ...(low !== undefined && { exclusiveMinimum: low }),
    ...(i < bounds.length && { exclusiveMaximum: bounds[i]! }),
  }))
}

/** Filters values by their kind. */
export const valuesOfKind = (
  values: readonly Json[],
  ...wanted: readonly Kind[]
): readonly Json[] => values.filter((value) => wanted.includes(kindOfValue(value)))

const kindsOfEnforced = (schema: EnforcedSchema): Kinds => {
  if (typeof schema === "boolean") return schema ? everyKind : new Set()
  const each = (list: Json) => (list as readonly EnforcedSchema[]).map(kindsOfEnforced)
  if (schema.allOf) return each(schema.allOf).reduce(inBoth, everyKind)
  if (schema.anyOf) return new Set(each(schema.anyOf).flatMap((some) => [...some]))
  if (Array.isArray(schema.enum)) return new Set(schema.enum.map(kindOfValue))
  return kindsOfType(schema.type)
}

/** Leaves out alternatives that are of no such kind. */
export const restricted = (schema: EnforcedSchema, to: Kinds): EnforcedSchema => {
  if (typeof schema === "boolean") return schema
  const again = (list: Json) =>
    (list as readonly EnforcedSchema[])
      .filter((one) => inBoth(kindsOfEnforced(one), to).size > 0)
      .map((one) => restricted(one, to))
  if (schema.anyOf) return anyOf(again(schema.anyOf))
  if (schema.allOf)
    return allOf((schema.allOf as readonly EnforcedSchema[]).map((one) => restricted(one, to)))
  return schema
}
