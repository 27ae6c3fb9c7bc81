import { percentFormat } from "./python-format.ts"
import {
  listValue,
  numberValue,
  type TemplateValue,
  templateValue,
  textValue,
} from "./python-text.ts"
import {
  areEqual,
  compare,
  isList,
  isNumeric,
  isText,
  isUndefined,
  itemsOf,
} from "./python-values.ts"

type Values = ReadonlyMap<string, TemplateValue>

export const isIn = (item: TemplateValue, whole: TemplateValue): boolean => {
  if (isList(whole)) return itemsOf(whole).some((each) => areEqual(each, item))
  if (isUndefined(whole)) return false
  if (whole.type === "ObjectValue")
    return isText(item) && (whole.value as Values).has(item.value as string)
  if (isText(whole) && isText(item)) return (whole.value as string).includes(item.value as string)
  throw new Error(`a ${item.type} can't be looked for in a ${whole.type}`)
}

const mostItems = 100_000

const repeated = (whole: TemplateValue, count: number): TemplateValue => {
  const times = Math.max(0, count)
  const size = isText(whole) ? (whole.value as string).length : itemsOf(whole).length
  if (size * times > mostItems) throw new Error(`a product of more than ${mostItems} items`)
  if (isText(whole)) return textValue((whole.value as string).repeat(times))
  return listValue(Array.from({ length: times }, () => itemsOf(whole)).flat())
}

const isFloat = (...values: readonly TemplateValue[]): boolean =>
  values.some(({ type }) => type === "FloatValue")

const product = (left: TemplateValue, right: TemplateValue): TemplateValue => {
  if (isNumeric(left) && isNumeric(right))
    return numberValue(Number(left.value) * Number(right.value), isFloat(left, right))
  for (const [whole, count] of [
    [left, right],
    [right, left],
  ] as const)
    if ((isText(whole) || isList(whole)) && isNumeric(count) && !isFloat(count))
      return repeated(whole, Number(count.value))
  throw new Error(`a ${left.type} and a ${right.type} have no product`)
}

/** The rest of a division has the sign of the divisor; a text is a format. */
const rest = (left: TemplateValue, right: TemplateValue): TemplateValue => {
  if (isText(left)) {
    const format = left.value as string
    if (right.type === "ObjectValue")
      return textValue(percentFormat(format, [], right.value as Values))
    const values = right.type === "TupleValue" ? itemsOf(right) : [right]
    return textValue(percentFormat(format, values, new Map()))
  }
  if (!isNumeric(left) || !isNumeric(right))
    throw new Error(`a ${left.type} can't be divided by a ${right.type}`)
  const [a, b] = [Number(left.value), Number(right.value)]
  if (b === 0) throw new Error("division by zero")
  return numberValue(a - b * Math.floor(a / b), isFloat(left, right))
}

type Operator = (left: TemplateValue, right: TemplateValue) => boolean

/** The operators that are true or false. */
export const relations: Readonly<Record<string, Operator>> = {
  "==": areEqual,
  "!=": (left, right) => !areEqual(left, right),
  in: isIn,
  "not in": (left, right) => !isIn(left, right),
  "<": (left, right) => compare(left, right) < 0,
  "<=": (left, right) => compare(left, right) <= 0,
  ">": (left, right) => compare(left, right) > 0,
  ">=": (left, right) => compare(left, right) >= 0,
}

/** The operators that the library has otherwise than Python, as functions of their two sides. */
export const pythonOperators: Readonly<
  Record<string, (left: TemplateValue, right: TemplateValue) => TemplateValue>
> = {
  ...Object.fromEntries(
    Object.entries(relations).map(([name, relation]) => [
      name,
      (left: TemplateValue, right: TemplateValue) => templateValue(relation(left, right)),
    ]),
  ),
  "*": product,
  "%": rest,
}
