import { listValue, pythonText, type TemplateValue, templateValue } from "./python-text.ts"

/** What a function of a template is called with. */
export interface Given {
  readonly args: readonly TemplateValue[]
  readonly named: ReadonlyMap<string, TemplateValue>
}

/** Keyword arguments are the last one in the library. */
export const given = (args: readonly TemplateValue[]): Given => {
  const last = args.at(-1)
  return last?.type === "KeywordArgumentsValue"
    ? { args: args.slice(0, -1), named: last.value as Given["named"] }
    : { args, named: new Map() }
}

/** An argument by its place or its name. */
export const argument = (
  { args, named }: Given,
  at: number,
  name: string,
): TemplateValue | undefined => args[at] ?? named.get(name)

export const undefinedValue = templateValue(undefined)
export const isUndefined = ({ type }: TemplateValue): boolean => type === "UndefinedValue"
export const isText = ({ type }: TemplateValue): boolean => type === "StringValue"
export const isList = ({ type }: TemplateValue): boolean =>
  type === "ArrayValue" || type === "TupleValue"
export const isTrue = (value: TemplateValue | undefined): boolean =>
  value?.__bool__().value === true
export const isNumeric = ({ type }: TemplateValue): boolean =>
  type === "IntegerValue" || type === "FloatValue" || type === "BooleanValue"

/** What a loop over the value sees: characters of a text, and names of a dictionary. */
export const itemsOf = (value: TemplateValue): readonly TemplateValue[] => {
  if (isList(value)) return value.value as readonly TemplateValue[]
  if (isUndefined(value)) return []
  if (isText(value)) return [...(value.value as string)].map((each) => templateValue(each))
  if (value.type === "ObjectValue")
    return [...(value.value as ReadonlyMap<string, unknown>).keys()].map((each) =>
      templateValue(each),
    )
  throw new Error(`a ${value.type} has no items`)
}

/** A character of a text, which may be two units; a negative place counts from its end. */
export const characterAt = (text: string, at: number): TemplateValue => {
  // of as many units as that many characters may have, as texts may be long
  const part = at < 0 ? text.slice(2 * at) : text.slice(0, 2 * (at + 1))
  const character = [...part].at(at)
  return character === undefined ? undefinedValue : templateValue(character)
}

/** `whole[key]`. */
export const itemOf = (whole: TemplateValue, key: TemplateValue): TemplateValue => {
  if (isText(whole) || isList(whole)) {
    if (!isText(key)) {
      const at = numberOf(key, 0)
      if (isText(whole)) return characterAt(whole.value as string, at)
      return itemsOf(whole).at(at) ?? undefinedValue
    }
    return whole.builtins.get(key.value as string) ?? undefinedValue
  }
  const own = whole.value instanceof Map ? (whole.value as Named).get(pythonText(key)) : undefined
  return own ?? whole.builtins.get(pythonText(key)) ?? undefinedValue
}

/** What a loop goes through; `areTaken`: its items are taken apart. */
export const loopItems = (value: TemplateValue, areTaken: boolean): TemplateValue => {
  if (value.type === "ObjectValue" || !(isText(value) || isList(value) || isUndefined(value)))
    return value
  const items = itemsOf(value)
  return listValue(
    areTaken ? items.map((item) => (isList(item) ? listValue(itemsOf(item)) : item)) : items,
  )
}

/**
 * An attribute of an item, as Jinja's filters name it: names and numbers with dots between them.
 * Without a path it is the item itself.
 */
export const attributeOf = (
  item: TemplateValue,
  path: TemplateValue | undefined,
): TemplateValue => {
  if (path === undefined) return item
  let value = item
  for (const part of pythonText(path).split(".")) {
    const inner =
      value.type === "ObjectValue"
        ? (value.value as ReadonlyMap<string, TemplateValue>).get(part)
        : isList(value) && /^\d+$/.test(part)
          ? itemsOf(value)[Number(part)]
          : undefined
    value = inner ?? undefinedValue
  }
  return value
}

type Named = ReadonlyMap<string, TemplateValue>

/** Python's `==`, where texts equal no numbers, and lists and dictionaries their like. */
export const areEqual = (one: TemplateValue, other: TemplateValue): boolean => {
  if (isNumeric(one) && isNumeric(other)) return Number(one.value) === Number(other.value)
  if (isList(one) && isList(other)) {
    const [a, b] = [itemsOf(one), itemsOf(other)]
    return a.length === b.length && a.every((each, at) => areEqual(each, b[at]!))
  }
  if (one.type !== other.type) return false
  if (one.type !== "ObjectValue") return one.value === other.value
  const [a, b] = [one.value as Named, other.value as Named]
  return (
    a.size === b.size &&
    [...a].every(([key, each]) => {
      const found = b.get(key)
      return found !== undefined && areEqual(each, found)
    })
  )
}

/** Negative, zero or positive, as the code points of two texts are ordered. */
const compareTexts = (one: string, other: string): number => {
  const [a, b] = [[...one], [...other]]
  const at = a.findIndex((character, i) => character !== b[i])
  if (at < 0) return a.length - b.length
  return b[at] === undefined ? 1 : a[at]!.codePointAt(0)! - b[at].codePointAt(0)!
}

/** Orders numbers, texts and lists of such; others throw. */
export const compare = (one: TemplateValue, other: TemplateValue): number => {
  if (isNumeric(one) && isNumeric(other)) return Number(one.value) - Number(other.value)
  if (isText(one) && isText(other)) return compareTexts(one.value as string, other.value as string)
  if (isList(one) && isList(other)) {
    const [a, b] = [itemsOf(one), itemsOf(other)]
    const at = a.findIndex((each, i) => b[i] === undefined || !areEqual(each, b[i]))
    if (at < 0) return a.length - b.length
    return b[at] === undefined ? 1 : compare(a[at]!, b[at])
  }
  throw new Error(`a ${one.type} and a ${other.type} have no order`)
}

export const numberOf = (value: TemplateValue | undefined, byDefault: number): number => {
  if (value === undefined) return byDefault
  if (!isNumeric(value)) throw new Error(`a ${value.type} is not a number`)
  return Number(value.value)
}

/** A filter of templates, or a method of a value. */
export type Filter = (value: TemplateValue, more: Given) => TemplateValue
