import type { Json } from "../../../../core/json.ts"

/**
 * Formats that are enforced, as patterns for whole strings. Where validators differ, a pattern
 * accepts only what all of them accept.
 */
const leapYear = "(?:[1-9][0-9](?:0[48]|[2468][048]|[13579][26])|(?:[2468][048]|[13579][26])00)"
const date = `(?:[1-9][0-9]{3}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))|${leapYear}-02-29)`
const fraction = "(?:\\.[0-9]{1,9})?"
/** A leap second is the last of a day in UTC, written in UTC here. */
const time = `(?:(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]${fraction}(?:[Zz]|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])|23:59:60${fraction}(?:[Zz]|[+-]00:00))`

const count = "[0-9]{1,12}"
const days = `(?:${count}Y(?:${count}M(?:${count}D)?)?|${count}M(?:${count}D)?|${count}D)`
const hours = `T(?:${count}H(?:${count}M(?:${count}S)?)?|${count}M(?:${count}S)?|${count}S)`

const ipv4Byte = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9][0-9]|[0-9])"
const ipv4 = `(?:${ipv4Byte}\\.){3}${ipv4Byte}`
const group = "[0-9A-Fa-f]{1,4}"
const upTo = (most: number, pattern: (i: number) => string): string =>
  Array.from({ length: most }, (_, i) => pattern(i + 1)).join("|")
const ipv6 = `(?:(?:${group}:){7}${group}|(?:${group}:){1,7}:|${upTo(6, (i) => `(?:${group}:){1,${i}}(?::${group}){1,${7 - i}}`)}|:(?::${group}){1,7}|::|(?:${group}:){6}${ipv4}|:(?::${group}){0,5}:${ipv4}|${upTo(5, (i) => `(?:${group}:){${i}}(?::${group}){0,${5 - i}}:${ipv4}`)})`

const alphanumeric = "[A-Za-z0-9]"
const inner = "[A-Za-z0-9-]"
/** Hyphens as third and fourth character are left to names in punycode. */
const labelUpTo = (most: number): string =>
  `${alphanumeric}(?:${inner}?${alphanumeric}|${inner}{2}${alphanumeric}|${inner}(?:${alphanumeric}${inner}|-${alphanumeric})${inner}{0,${most - 5}}${alphanumeric})?`
/** At most 253 characters: few labels of any length, or more of them. */
const hostWith = (dots: number, label = labelUpTo(63)): string =>
  `(?:${label}(?:\\.${label}){${dots},2}|${labelUpTo(30)}(?:\\.${labelUpTo(30)}){3,6})`
/** Letters of scripts without rules of their own, in words that stay short in punycode. */
const letter =
  "0-9a-zß-öø-ÿα-ωа-яё\\u{3042}-\\u{3093}\\u{30a2}-\\u{30f3}\\u{4e00}-\\u{9fa5}\\u{ac00}-\\u{d7a3}"
const word = `(?:${labelUpTo(63)}|[${letter}]{1,14})`
const nameChar = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]"
const mailbox = (char: string, host: string): string =>
  `(?:${char}{1,64}|${char}{1,20}(?:\\.${char}{1,20}){1,2})@${host}`

const base64 = "[A-Za-z0-9+/]"
const pointer = "(?:/(?:[^~/]|~0|~1)*)*"
const escaped = "%[0-9A-Fa-f]{2}"

/** RFC 3986, and with `more` characters RFC 3987. */
const address = (more: string, isRelative: boolean): string => {
  const plain = `A-Za-z0-9._~!$&'()*+,;=${more}`
  const char = `(?:[${plain}:@-]|${escaped})`
  const host = `(?:\\[${ipv6}\\]|(?:[${plain}-]|${escaped})+)`
  const authority = `//(?:(?:(?:[${plain}:-]|${escaped})*@)?${host}(?::[0-9]{1,5})?)?(?:/${char}*)*`
  const tail = `(?:\\?(?:${char}|[/?])*)?(?:#(?:${char}|[/?])*)?`
  const absolute = `/(?:${char}+(?:/${char}*)*)?`
  const full = `[A-Za-z][A-Za-z0-9+.-]{0,30}:(?:${authority}|${absolute}|${char}+(?:/${char}*)*)${tail}`
  const first = `(?:[${plain}@-]|${escaped})+`
  return isRelative
    ? `(?:${full}|(?:${authority}|${absolute}|${first}(?:/${char}*)*)?${tail})`
    : full
}
const international = "\\u{a0}-\\u{d7ff}\\u{f900}-\\u{fdcf}\\u{fdf0}-\\u{ffef}"

const pathChar = `(?:[A-Za-z0-9._~!$&'()*+,;=:@-]|${escaped})`
const query = `(?:\\?(?:${pathChar}|[/?])*)?(?:#(?:${pathChar}|[/?])*)?`
const variable = `(?:[A-Za-z0-9_]|${escaped})+(?::[1-9][0-9]{0,3}|\\*)?`

const patterns: Readonly<Record<string, string>> = {
  date,
  time,
  "date-time": `${date}[Tt]${time}`,
  "iso-time": time,
  "iso-date-time": `${date}[Tt]${time}`,
  duration: `P(?:${count}W|${days}(?:${hours})?|${hours})`,
  email: mailbox(nameChar, hostWith(1)),
  "idn-email": mailbox(`(?:${nameChar}|[${letter}])`, hostWith(1, word)),
  hostname: hostWith(0),
  "idn-hostname": hostWith(0, word),
  ipv4,
  ipv6,
  uuid: "[0-9A-Fa-f]{8}-(?:[0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}",
  uri: address("", false),
  iri: address(international, false),
  "uri-reference": address("", true),
  "iri-reference": address(international, true),
  url: `https?://(?:[a-z0-9](?:-?[a-z0-9]){0,20}\\.){1,4}[a-z]{2,6}(?::[1-9][0-9]{1,4})?(?:(?:/${pathChar}*)+${query})?`,
  "uri-template": `(?:[!#$&()*+,./0-9:;=?@A-Z\\[\\]_a-z~-]|${escaped}|\\{[+#./;?&]?${variable}(?:,${variable})*\\})*`,
  "json-pointer": pointer,
  "relative-json-pointer": `(?:0|[1-9][0-9]{0,6})(?:#|${pointer})`,
  byte: `(?:${base64}{4})*(?:${base64}{2}==|${base64}{3}=)?`,
}

export const enforcedFormats: readonly string[] = Object.keys(patterns)

/** Returns the pattern for whole strings; undefined: the format is an annotation only. */
export const formatPattern = (format: string): string | undefined =>
  Object.hasOwn(patterns, format) ? `^(?:${patterns[format]})$` : undefined

/** Formats that no pattern says: finished texts are judged by the validator. */
export const judgedFormats: readonly string[] = ["regex"]

/** Formats of numbers with their minimum and maximum. */
export const numberFormats: Readonly<Record<string, readonly [number, number]>> = {
  int32: [-(2 ** 31), 2 ** 31 - 1],
}

/** Returns the bounds of a format of numbers; undefined: it is none. */
export const numberFormat = (format: Json): readonly [number, number] | undefined =>
  typeof format === "string" && Object.hasOwn(numberFormats, format)
    ? numberFormats[format]
    : undefined
