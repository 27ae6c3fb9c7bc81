import {
  batch,
  choosing,
  extreme,
  grouped,
  itemAt,
  joined,
  lengthOf,
  reversed,
  sum,
  unique,
} from "./list-filters.ts"
import { percentFormat } from "./python-format.ts"
import { capitalized, replaced, stripped } from "./python-methods.ts"
import { listValue, numberValue, pythonJson, pythonText, textValue } from "./python-text.ts"
import {
  argument,
  attributeOf,
  type Filter,
  isTrue,
  isUndefined,
  itemsOf,
} from "./python-values.ts"
import { escaped, indented, round, textFilter, truncated, whole } from "./text-filters.ts"

const mapped: Filter = (value, more) => {
  const attribute = more.named.get("attribute")
  if (attribute) {
    const byDefault = more.named.get("default")
    return listValue(
      itemsOf(value).map((item) => {
        const found = attributeOf(item, attribute)
        return isUndefined(found) ? (byDefault ?? found) : found
      }),
    )
  }
  const name = more.args[0] && pythonText(more.args[0])
  const filter = name === undefined ? undefined : filterNamed(name)
  if (!filter) throw new Error(`the filter '${name}' is not known to 'map'`)
  const rest = { args: more.args.slice(1), named: more.named }
  return listValue(itemsOf(value).map((item) => filter(item, rest)))
}

const defaulted: Filter = (value, more) => {
  const isWanted = isTrue(argument(more, 1, "boolean")) ? !isTrue(value) : isUndefined(value)
  return isWanted ? (argument(more, 0, "default_value") ?? textValue("")) : value
}

/** Words begin where Jinja has it: behind white space, brackets and dashes. */
const titled = textFilter((text) =>
  text
    .split(/([-\s([{<]+)/)
    .map((part) => capitalized(part))
    .join(""),
)

const trimmed: Filter = (value, more) => {
  const characters = argument(more, 0, "chars")
  const isGiven = characters !== undefined && characters.type !== "NullValue"
  return textValue(stripped(pythonText(value), isGiven ? pythonText(characters) : undefined))
}

const wordCount: Filter = (value) =>
  numberValue(pythonText(value).match(/[\p{L}\p{N}_]+/gu)?.length ?? 0, false)

/** Jinja's filters that the library lacks, or has otherwise. */
export const pythonFilters: Readonly<Record<string, Filter>> = {
  batch,
  capitalize: textFilter(capitalized),
  count: lengthOf,
  d: defaulted,
  default: defaulted,
  e: escaped,
  escape: escaped,
  first: itemAt(0),
  format: (value, { args, named }) => textValue(percentFormat(pythonText(value), args, named)),
  groupby: grouped,
  indent: indented,
  int: whole,
  join: joined,
  last: itemAt(-1),
  length: lengthOf,
  list: (value) => listValue(itemsOf(value)),
  lower: textFilter((text) => text.toLowerCase()),
  map: mapped,
  max: extreme(1),
  min: extreme(-1),
  reject: choosing(false, false),
  rejectattr: choosing(false, true),
  replace: (value, more) => replaced(pythonText(value), more),
  reverse: reversed,
  round,
  select: choosing(true, false),
  selectattr: choosing(true, true),
  string: (value) => textValue(pythonText(value)),
  sum,
  title: titled,
  tojson: (value, { args, named }) => pythonJson([value, ...args], named),
  trim: trimmed,
  truncate: truncated,
  unique,
  upper: textFilter((text) => text.toUpperCase()),
  wordcount: wordCount,
}

const filterNamed = (name: string): Filter | undefined =>
  Object.hasOwn(pythonFilters, name) ? pythonFilters[name] : undefined
