import { type TemplateValue, templateValue } from "./python-text.ts"

const numbers: ReadonlySet<string> = new Set(["BooleanValue", "IntegerValue", "FloatValue"])
const lists: ReadonlySet<string> = new Set(["ArrayValue", "TupleValue"])

type Items = readonly TemplateValue[]
type Values = ReadonlyMap<string, TemplateValue>

/** Python's `==`, where texts equal no numbers, and lists and dictionaries their like. */
const areEqual = (one: TemplateValue, other: TemplateValue): boolean => {
  if (numbers.has(one.type) && numbers.has(other.type))
    return Number(one.value) === Number(other.value)
  if (lists.has(one.type) && lists.has(other.type)) {
    const [a, b] = [one.value as Items, other.value as Items]
    return a.length === b.length && a.every((each, at) => areEqual(each, b[at]!))
  }
  if (one.type !== other.type) return false
  if (one.type !== "ObjectValue") return one.value === other.value
  const [a, b] = [one.value as Values, other.value as Values]
  return (
    a.size === b.size &&
    [...a].every(([key, each]) => {
      const found = b.get(key)
      return found !== undefined && areEqual(each, found)
    })
  )
}

const isIn = (item: TemplateValue, whole: TemplateValue): boolean => {
  if (lists.has(whole.type)) return (whole.value as Items).some((each) => areEqual(each, item))
  if (whole.type === "UndefinedValue") return false
  const isText = item.type === "StringValue"
  if (whole.type === "ObjectValue")
    return isText && (whole.value as Values).has(item.value as string)
  if (whole.type === "StringValue" && isText)
    return (whole.value as string).includes(item.value as string)
  throw new Error(`a ${item.type} can't be looked for in a ${whole.type}`)
}

type Operator = (left: TemplateValue, right: TemplateValue) => boolean

const operators: Readonly<Record<string, Operator>> = {
  "==": areEqual,
  "!=": (left, right) => !areEqual(left, right),
  in: isIn,
  "not in": (left, right) => !isIn(left, right),
}

/** The operators that the library has otherwise than Python, as functions of their two sides. */
export const pythonOperators: Readonly<
  Record<string, (left: TemplateValue, right: TemplateValue) => TemplateValue>
> = Object.fromEntries(
  Object.entries(operators).map(([name, operator]) => [
    name,
    (left: TemplateValue, right: TemplateValue) => templateValue(operator(left, right)),
  ]),
)
