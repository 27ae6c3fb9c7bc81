import { testNamed } from "./python-tests.ts"
import { listValue, numberValue, pythonText, type TemplateValue, textValue } from "./python-text.ts"
import {
  argument,
  attributeOf,
  characterAt,
  compare,
  type Filter,
  isText,
  isTrue,
  isUndefined,
  itemsOf,
  numberOf,
  undefinedValue,
} from "./python-values.ts"

/** Items that pass a test, or fail it; `byAttribute`: tested is an attribute of each. */
export const choosing =
  (wanted: boolean, byAttribute: boolean): Filter =>
  (value, { args }) => {
    const [attribute, more] = byAttribute ? [args[0], args.slice(1)] : [undefined, args]
    if (byAttribute && !attribute) throw new Error("the filter has no attribute to look at")
    const test = more[0] ? testNamed(pythonText(more[0])) : isTrue
    const chosen = itemsOf(value).filter(
      (item) => test(attributeOf(item, attribute), ...more.slice(1)) === wanted,
    )
    return listValue(chosen)
  }

export const joined: Filter = (value, more) => {
  const attribute = argument(more, 1, "attribute")
  const separator = argument(more, 0, "d")
  const items = itemsOf(value).map((item) => attributeOf(item, attribute))
  return textValue(
    items.map((item) => pythonText(item)).join(separator ? pythonText(separator) : ""),
  )
}

export const sum: Filter = (value, more) => {
  const attribute = argument(more, 0, "attribute")
  const start = argument(more, 1, "start") ?? numberValue(0, false)
  return itemsOf(value).reduce((total, item) => {
    const each = attribute && attribute.type !== "NullValue" ? attributeOf(item, attribute) : item
    const isFloat = [total, each].some(({ type }) => type === "FloatValue")
    return numberValue(numberOf(total, 0) + numberOf(each, 0), isFloat)
  }, start)
}

/** What two items are compared by: texts without regard to case, unless it is asked for. */
const keyOf = (item: TemplateValue, isExact: boolean): TemplateValue =>
  !isExact && isText(item) ? textValue((item.value as string).toLowerCase()) : item

export const extreme =
  (sign: number): Filter =>
  (value, more) => {
    const isExact = isTrue(argument(more, 0, "case_sensitive"))
    const attribute = argument(more, 1, "attribute")
    const key = (item: TemplateValue) => keyOf(attributeOf(item, attribute), isExact)
    return itemsOf(value).reduce(
      (best, item) => (isUndefined(best) || sign * compare(key(item), key(best)) > 0 ? item : best),
      undefinedValue,
    )
  }

export const unique: Filter = (value, more) => {
  const isExact = isTrue(argument(more, 0, "case_sensitive"))
  const attribute = argument(more, 1, "attribute")
  const seen = new Set<string>()
  return listValue(
    itemsOf(value).filter((item) => {
      const key = pythonText(keyOf(attributeOf(item, attribute), isExact), true)
      const isNew = !seen.has(key)
      seen.add(key)
      return isNew
    }),
  )
}

export const grouped: Filter = (value, more) => {
  const attribute = argument(more, 0, "attribute")
  if (!attribute) throw new Error("'groupby' has no attribute")
  const keyed = itemsOf(value).map((item) => ({ item, key: attributeOf(item, attribute) }))
  keyed.sort((a, b) => compare(keyOf(a.key, false), keyOf(b.key, false)))
  const groups: { key: TemplateValue; items: TemplateValue[] }[] = []
  for (const { item, key } of keyed) {
    const last = groups.at(-1)
    if (last && compare(keyOf(last.key, false), keyOf(key, false)) === 0) last.items.push(item)
    else groups.push({ key, items: [item] })
  }
  return listValue(groups.map(({ key, items }) => listValue([key, listValue(items)])))
}

export const batch: Filter = (value, more) => {
  const size = numberOf(argument(more, 0, "linecount"), 0)
  if (!Number.isInteger(size) || size < 1) throw new Error(`can't make batches of ${size}`)
  const fill = argument(more, 1, "fill_with")
  const items = itemsOf(value)
  const parts: TemplateValue[][] = []
  for (let at = 0; at < items.length; at += size) parts.push(items.slice(at, at + size))
  const last = parts.at(-1)
  while (last && fill && fill.type !== "NullValue" && last.length < size) last.push(fill)
  return listValue(parts.map(listValue))
}

/** Characters, items or names. */
export const lengthOf: Filter = (value) =>
  numberValue(isText(value) ? charactersIn(value.value as string) : itemsOf(value).length, false)

const charactersIn = (text: string): number =>
  text.length - (text.match(/[\ud800-\udbff][\udc00-\udfff]/g)?.length ?? 0)

export const itemAt =
  (at: number): Filter =>
  (value) =>
    isText(value)
      ? characterAt(value.value as string, at)
      : (itemsOf(value).at(at) ?? undefinedValue)

export const reversed: Filter = (value) => {
  const items = itemsOf(value).slice().reverse()
  return isText(value)
    ? textValue(items.map((each) => pythonText(each)).join(""))
    : listValue(items)
}
