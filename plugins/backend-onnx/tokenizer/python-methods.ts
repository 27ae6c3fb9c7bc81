import { braceFormat } from "./python-format.ts"
import {
  listValue,
  numberValue,
  pythonText,
  type TemplateValue,
  templateValue,
  textValue,
} from "./python-text.ts"
import {
  areEqual,
  argument,
  type Filter,
  type Given,
  isList,
  isText,
  isTrue,
  itemsOf,
  numberOf,
} from "./python-values.ts"

/** Unicode's white space; JavaScript's has U+FEFF in place of U+0085. */
export const whiteSpace =
  " \t\n\v\f\r\u0085\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"

const pythonSpace = `${whiteSpace}\u001c\u001d\u001e\u001f`

/**
 * A text without these characters at its ends, or at one of them; by default without what is white
 * space in Python.
 */
export const stripped = (
  text: string,
  characters = pythonSpace,
  ends: { readonly begin: boolean; readonly end: boolean } = { begin: true, end: true },
): string => {
  const those = new Set(characters)
  let [from, to] = [0, text.length]
  while (ends.begin && from < to) {
    const first = String.fromCodePoint(text.codePointAt(from)!)
    if (!those.has(first)) break
    from += first.length
  }
  while (ends.end && from < to) {
    // the last character may be of two units
    const pair = text.slice(Math.max(from, to - 2), to)
    const last = pair.codePointAt(0)! > 0xffff ? pair : text[to - 1]!
    if (!those.has(last)) break
    to -= last.length
  }
  return text.slice(from, to)
}

export const capitalized = (text: string): string => {
  const [first = "", ...rest] = text
  return first.toUpperCase() + rest.join("").toLowerCase()
}

type Method = (text: string, more: Given) => TemplateValue

const changed =
  (change: (text: string) => string): Method =>
  (text) =>
    textValue(change(text))

const is =
  (pattern: RegExp): Method =>
  (text) =>
    templateValue(pattern.test(text))

const textAt = (more: Given, at: number, name: string): string => {
  const value = argument(more, at, name)
  if (!value || !isText(value)) throw new Error(`the method lacks a text for '${name}'`)
  return value.value as string
}

/** The part of a text that `start` and `end`, counted in characters, leave. */
const within = (
  text: string,
  { args }: Given,
): { readonly part: string; readonly before: number } => {
  if (args.length < 2) return { part: text, before: 0 }
  const all = [...text]
  const [start, end] = [numberOf(args[1], 0), numberOf(args[2], all.length)]
  const before = start < 0 ? Math.max(0, all.length + start) : start
  return { part: all.slice(start, end).join(""), before }
}

/** Where a text is found, in characters; -1, or an error, where it isn't. */
const finding =
  (isLast: boolean, isWanted: boolean): Method =>
  (text, more) => {
    const { part, before } = within(text, more)
    const wanted = textAt(more, 0, "sub")
    const at = isLast ? part.lastIndexOf(wanted) : part.indexOf(wanted)
    if (at < 0 && isWanted) throw new Error(`'${wanted}' is not found`)
    return numberValue(at < 0 ? -1 : before + [...part.slice(0, at)].length, false)
  }

const affixed =
  (has: (part: string, affix: string) => boolean): Method =>
  (text, more) => {
    const affixes = more.args[0]?.type === "StringValue" ? [more.args[0]] : itemsOf(more.args[0]!)
    const { part } = within(text, more)
    return templateValue(affixes.some((affix) => has(part, pythonText(affix))))
  }

const listOf = (parts: readonly string[]): TemplateValue => listValue(parts.map(textValue))

/** The words of a text; `most` separations, counted from the end where `isLast`. */
const words = (text: string, most: number, isLast: boolean): readonly string[] => {
  const all = [...text.matchAll(/\S+/g)]
  if (most < 0 || all.length <= most + 1) return all.map(([word]) => word)
  if (isLast) {
    const kept = all.slice(all.length - most)
    const end = all[all.length - most - 1]!
    const head = text.slice(0, end.index + end[0].length).trimStart()
    return [head, ...kept.map(([word]) => word)]
  }
  return [...all.slice(0, most).map(([word]) => word), text.slice(all[most]!.index)]
}

const splitting =
  (isLast: boolean): Method =>
  (text, more) => {
    const separator = argument(more, 0, "sep")
    const most = numberOf(argument(more, 1, "maxsplit"), -1)
    if (separator === undefined || separator.type === "NullValue")
      return listOf(words(text, most, isLast))
    const by = pythonText(separator)
    if (by === "") throw new Error("empty separator")
    const parts = text.split(by)
    if (most < 0 || parts.length <= most + 1) return listOf(parts)
    const rest = parts.length - most
    return listOf(
      isLast
        ? [parts.slice(0, rest).join(by), ...parts.slice(rest)]
        : [...parts.slice(0, most), parts.slice(most).join(by)],
    )
  }

const parting =
  (isLast: boolean): Method =>
  (text, more) => {
    const by = textAt(more, 0, "sep")
    const at = isLast ? text.lastIndexOf(by) : text.indexOf(by)
    const found = [text.slice(0, at), by, text.slice(at + by.length)]
    const parts = at >= 0 ? found : isLast ? ["", "", text] : [text, "", ""]
    return listOf(parts)
  }

const lineEnd = /\r\n|[\n\r\v\f\u0085\u2028\u2029]/g

const lines: Method = (text, more) => {
  const keeps = isTrue(argument(more, 0, "keepends"))
  const found: string[] = []
  let from = 0
  for (const { index, 0: end } of text.matchAll(lineEnd)) {
    found.push(text.slice(from, keeps ? index + end.length : index))
    from = index + end.length
  }
  return listOf(from < text.length ? [...found, text.slice(from)] : found)
}

const mostWidth = 1000

const justifying =
  (left: number): Method =>
  (text, more) => {
    const width = numberOf(argument(more, 0, "width"), 0)
    if (width > mostWidth) throw new Error(`the width ${width} is more than ${mostWidth}`)
    const fill = more.args[1] ? pythonText(more.args[1]) : " "
    const missing = Math.max(0, width - [...text].length)
    const before = left === 0.5 ? Math.floor(missing / 2) + (missing & width & 1) : left * missing
    return textValue(fill.repeat(before) + text + fill.repeat(missing - before))
  }

const zeroFilled: Method = (text, more) => {
  const width = Math.min(mostWidth, numberOf(argument(more, 0, "width"), 0))
  const [, sign = "", rest = ""] = /^([-+]?)(.*)$/s.exec(text)!
  return textValue(sign + "0".repeat(Math.max(0, width - [...text].length)) + rest)
}

const titled = (text: string): string => text.replace(/\p{L}+/gu, (word) => capitalized(word))

export const replaced: Method = (text, more) => {
  const [from, to] = [textAt(more, 0, "old"), textAt(more, 1, "new")]
  const most = numberOf(argument(more, 2, "count"), -1)
  const parts = from === "" ? ["", ...text, ""] : text.split(from)
  const count = most < 0 ? parts.length - 1 : Math.min(most, parts.length - 1)
  return textValue(
    parts.slice(0, count + 1).join(to) +
      parts
        .slice(count + 1)
        .map((part) => from + part)
        .join(""),
  )
}

const textMethods: Readonly<Record<string, Method>> = {
  capitalize: changed(capitalized),
  casefold: changed((text) => text.toLowerCase().replaceAll("ß", "ss")),
  center: justifying(0.5),
  count: (text, more) => {
    const { part } = within(text, more)
    const wanted = textAt(more, 0, "sub")
    return numberValue(wanted === "" ? [...part].length + 1 : part.split(wanted).length - 1, false)
  },
  endswith: affixed((part, affix) => part.endsWith(affix)),
  find: finding(false, false),
  format: (text, { args, named }) => textValue(braceFormat(text, args, named)),
  index: finding(false, true),
  isalnum: is(/^[\p{L}\p{N}]+$/u),
  isalpha: is(/^\p{L}+$/u),
  isdecimal: is(/^\p{Nd}+$/u),
  isdigit: is(/^[\p{Nd}²³¹⁰⁴-⁹₀-₉]+$/u),
  islower: is(/^(?=.*\p{Ll})[^\p{Lu}\p{Lt}]*$/su),
  isnumeric: is(/^\p{N}+$/u),
  isspace: is(/^\s+$/u),
  isupper: is(/^(?=.*\p{Lu})[^\p{Ll}\p{Lt}]*$/su),
  join: (text, { args }) =>
    textValue(
      itemsOf(args[0]!)
        .map((each) => pythonText(each))
        .join(text),
    ),
  ljust: justifying(0),
  lower: changed((text) => text.toLowerCase()),
  partition: parting(false),
  removeprefix: (text, more) => {
    const affix = textAt(more, 0, "prefix")
    return textValue(text.startsWith(affix) ? text.slice(affix.length) : text)
  },
  removesuffix: (text, more) => {
    const affix = textAt(more, 0, "suffix")
    return textValue(affix !== "" && text.endsWith(affix) ? text.slice(0, -affix.length) : text)
  },
  replace: replaced,
  rfind: finding(true, false),
  rindex: finding(true, true),
  rjust: justifying(1),
  rpartition: parting(true),
  rsplit: splitting(true),
  split: splitting(false),
  splitlines: lines,
  startswith: affixed((part, affix) => part.startsWith(affix)),
  swapcase: changed((text) =>
    [...text].map((c) => (c === c.toLowerCase() ? c.toUpperCase() : c.toLowerCase())).join(""),
  ),
  title: changed(titled),
  upper: changed((text) => text.toUpperCase()),
  zfill: zeroFilled,
}

const listMethods: Readonly<Record<string, Filter>> = {
  count: (value, { args }) =>
    numberValue(itemsOf(value).filter((item) => areEqual(item, args[0]!)).length, false),
  index: (value, { args }) => {
    const at = itemsOf(value).findIndex((item) => areEqual(item, args[0]!))
    if (at < 0) throw new Error(`${pythonText(args[0]!, true)} is not in the list`)
    return numberValue(at, false)
  },
}

/** Python's methods of texts and lists that the library lacks, or has otherwise. */
export const methodNames: ReadonlySet<string> = new Set(Object.keys(textMethods))

export const methodOf = (value: TemplateValue, name: string): Filter | undefined => {
  if (isText(value)) return (text, more) => textMethods[name]!(text.value as string, more)
  return isList(value) && Object.hasOwn(listMethods, name) ? listMethods[name] : undefined
}
