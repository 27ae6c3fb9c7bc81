/**
 * Formats that are enforced, as patterns for whole strings. Where validators differ, a pattern
 * accepts only what all of them accept.
 */
const scheme = "[A-Za-z][A-Za-z0-9+.-]{0,30}"
const pathChar = "(?:[A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2})"
const tail = `(?:\\?(?:${pathChar}|[/?])*)?(?:#(?:${pathChar}|[/?])*)?`
const label = "[A-Za-z0-9](?:-?[A-Za-z0-9]){0,20}"
const uri = `${scheme}:(?://[A-Za-z0-9._~-]+(?::[0-9]{1,5})?(?:/${pathChar}*)*|${pathChar}+(?:/${pathChar}*)*)${tail}`
const atom = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]{1,20}"

const leapYear = "(?:[1-9][0-9](?:0[48]|[2468][048]|[13579][26])|(?:[2468][048]|[13579][26])00)"
const date = `(?:[1-9][0-9]{3}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))|${leapYear}-02-29)`
const time =
  "(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\\.[0-9]{1,9})?(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])"

const count = "[0-9]{1,6}"
const days = `(?:${count}Y(?:${count}M(?:${count}D)?)?|${count}M(?:${count}D)?|${count}D)`
const hours = `T(?:${count}H(?:${count}M(?:${count}S)?)?|${count}M(?:${count}S)?|${count}S)`

const byte = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9][0-9]|[0-9])"
const group = "[0-9A-Fa-f]{1,4}"
const groups = [1, 2, 3, 4, 5].map((most) => `(?:${group}:){1,${most}}(?::${group}){1,${6 - most}}`)
const pointer = "(?:/(?:[^~/]|~0|~1)*)*"
const base64 = "[A-Za-z0-9+/]"

const patterns: Readonly<Record<string, string>> = {
  date,
  time,
  "date-time": `${date}T${time}`,
  "iso-time": time,
  "iso-date-time": `${date}T${time}`,
  duration: `P(?:${count}W|${days}(?:${hours})?|${hours})`,
  email: `${atom}(?:\\.${atom}){0,2}@(?:${label}\\.){1,4}${label}`,
  "idn-email": `${atom}(?:\\.${atom}){0,2}@(?:${label}\\.){1,4}${label}`,
  hostname: `${label}(?:\\.${label}){0,5}`,
  "idn-hostname": `${label}(?:\\.${label}){0,5}`,
  ipv4: `(?:${byte}\\.){3}${byte}`,
  ipv6: `(?:(?:${group}:){7}${group}|(?:${group}:){1,7}:|${groups.join("|")}|${group}:(?::${group}){1,6}|:(?::${group}){1,7}|::)`,
  uuid: "[0-9A-Fa-f]{8}-(?:[0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}",
  uri,
  iri: uri,
  "uri-reference": `(?:${uri}|/(?:${pathChar}+(?:/${pathChar}*)*)?${tail})`,
  "iri-reference": `(?:${uri}|/(?:${pathChar}+(?:/${pathChar}*)*)?${tail})`,
  url: `https?://(?:[a-z0-9](?:-?[a-z0-9]){0,20}\\.){1,4}[a-z]{2,6}(?::[1-9][0-9]{1,4})?(?:(?:/${pathChar}*)+${tail})?`,
  "uri-template": "(?:[A-Za-z0-9._~/:?#&=-]|\\{[A-Za-z0-9_]{1,30}\\})*",
  "json-pointer": pointer,
  "relative-json-pointer": `(?:0|[1-9][0-9]{0,6})(?:#|${pointer})`,
  byte: `(?:${base64}{4})*(?:${base64}{2}==|${base64}{3}=)?`,
}

export const enforcedFormats: readonly string[] = Object.keys(patterns)

/** Returns the pattern for whole strings; undefined: the format is an annotation only. */
export const formatPattern = (format: string): string | undefined =>
  Object.hasOwn(patterns, format) ? `^(?:${patterns[format]})$` : undefined

/** Formats of numbers with their minimum and maximum. */
export const numberFormats: Readonly<Record<string, readonly [number, number]>> = {
  int32: [-(2 ** 31), 2 ** 31 - 1],
}
