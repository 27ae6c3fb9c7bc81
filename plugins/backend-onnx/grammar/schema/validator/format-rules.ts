import { isIPv4, isIPv6 } from "node:net"

/** Whether a text has a format. Every pattern here reads its text once, without backtracking. */
export type FormatRule = (text: string) => boolean

const matching = (pattern: string): FormatRule => {
  const rule = new RegExp(`^(?:${pattern})$`, "u")
  return (text) => rule.test(text)
}

const daysIn = (year: number, month: number): number => {
  if (month === 2) return (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0 ? 29 : 28
  return [4, 6, 9, 11].includes(month) ? 30 : 31
}

const isDate: FormatRule = (text) => {
  const found = /^(\d{4})-(\d\d)-(\d\d)$/.exec(text)
  if (!found) return false
  const [year, month, day] = found.slice(1).map(Number) as [number, number, number]
  return month >= 1 && month <= 12 && day >= 1 && day <= daysIn(year, month)
}

/** A second 60 is one before midnight in UTC. */
const isTime =
  (needsZone: boolean): FormatRule =>
  (text) => {
    const found = /^(\d\d):(\d\d):(\d\d)(?:\.\d+)?(?:([Zz])|([+-])(\d\d):?(\d\d)?)?$/.exec(text)
    if (!found) return false
    const [hour = 0, minute = 0, second = 0] = found.slice(1, 4).map(Number)
    const [zoneHour, zoneMinute] = [Number(found[6] ?? 0), Number(found[7] ?? 0)]
    if (needsZone && found[4] === undefined && (found[5] === undefined || found[7] === undefined))
      return false
    if (hour > 23 || minute > 59 || zoneHour > 23 || zoneMinute > 59) return false
    const shift = (zoneHour * 60 + zoneMinute) * (found[5] === "-" ? 1 : -1)
    const inUtc = (((hour * 60 + minute + shift) % 1_440) + 1_440) % 1_440
    return second < 60 || (second === 60 && inUtc === 1_439)
  }

const isDateTime =
  (needsZone: boolean): FormatRule =>
  (text) =>
    isDate(text.slice(0, 10)) && /^[Tt ]$/.test(text[10] ?? "") && isTime(needsZone)(text.slice(11))

const days = "\\d+Y(?:\\d+M(?:\\d+D)?)?|\\d+M(?:\\d+D)?|\\d+D"
const hours = "T(?:\\d+H(?:\\d+M(?:\\d+S)?)?|\\d+M(?:\\d+S)?|\\d+S)"

const wide = "\\u{a0}-\\u{d7ff}\\u{f900}-\\u{fdcf}\\u{fdf0}-\\u{ffef}\\u{10000}-\\u{efffd}"
const label = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
const hostname = matching(`${label}(?:\\.${label})*\\.?`)
const isHostname: FormatRule = (text) => text.length <= 254 && hostname(text)
const idnHostname = matching(`[A-Za-z0-9.\\u{3002}\\u{ff0e}\\u{ff61}-\\u{ff61}${wide}-]+`)

const isEmail = (isHost: FormatRule, more: string): FormatRule => {
  const atom = `[A-Za-z0-9!#$%&'*+/=?^_\`{|}~${more}-]+`
  const isLocal = matching(`${atom}(?:\\.${atom})*|"(?:[^"\\\\\\n\\r]|\\\\[^\\n\\r])*"`)
  return (text) => {
    const at = text.lastIndexOf("@")
    const host = text.slice(at + 1)
    return at > 0 && isLocal(text.slice(0, at)) && (isHost(host) || isAddress(host))
  }
}

const isAddress = (host: string): boolean => {
  const inside = /^\[(?:IPv6:)?(.*)\]$/.exec(host)?.[1]
  return inside !== undefined && (isIPv4(inside) || isIPv6(inside))
}

/** RFC 3986, and RFC 3987 with `more` characters. */
const addressRule = (isRelative: boolean, more: string): FormatRule => {
  const hex = "%[0-9A-Fa-f]{2}"
  const plain = `A-Za-z0-9._~!$&'()*+,;=\\-${more}`
  const authority = `(?:(?:[${plain}:]|${hex})*@)?(?:\\[[0-9A-Fa-fv:.]+\\]|(?:[${plain}]|${hex})*)(?::\\d*)?`
  const char = `[${plain}:@]|${hex}`
  const tail = `(?:\\?(?:${char}|[/?\\u{e000}-\\u{f8ff}])*)?(?:#(?:${char}|[/?])*)?`
  const full = `[A-Za-z][A-Za-z0-9+.-]*:(?://${authority}(?:/(?:${char})*)*|/?(?:(?:${char})(?:${char}|/)*)?)${tail}`
  const part = `(?://${authority}(?:/(?:${char})*)*|/(?:(?:${char})(?:${char}|/)*)?|(?:(?:[${plain}@]|${hex})+(?:/(?:${char}|/)*)?)?)${tail}`
  const matches = matching(isRelative ? `${full}|${part}` : full)
  return (text) => {
    const host = /^[^/?#]*\/\/(?:[^/?#]*@)?\[([^\]]*)\]/.exec(text)?.[1]
    return matches(text) && (host === undefined || /^v/i.test(host) || isIPv6(host))
  }
}

const variable = "(?:[A-Za-z0-9_.]|%[0-9A-Fa-f]{2})+(?::[1-9][0-9]{0,3}|\\*)?"
const template = `(?:[^\\u{0}-\\u{20}"'<>%\\\\^\`{|}]|%[0-9A-Fa-f]{2}|\\{[+#./;?&=,!@|]?${variable}(?:,${variable})*\\})*`
const pointer = "(?:/(?:[^~/]|~0|~1)*)*"
const base64 = "[A-Za-z0-9+/]"

/** In Unicode mode, in which `\a` and the like are errors; `\Z` is another language's anchor. */
const isRegex: FormatRule = (text) => {
  try {
    new RegExp(text, "u")
    return !/[^\\]\\Z/.test(text)
  } catch {
    return false
  }
}

const rules: Readonly<Record<string, FormatRule>> = {
  date: isDate,
  time: isTime(true),
  "date-time": isDateTime(true),
  "iso-time": isTime(false),
  "iso-date-time": isDateTime(false),
  duration: matching(`P(?:\\d+W|(?:${days})(?:${hours})?|${hours})`),
  email: isEmail(isHostname, ""),
  "idn-email": isEmail((text) => idnHostname(text), wide),
  hostname: isHostname,
  "idn-hostname": idnHostname,
  ipv4: isIPv4,
  ipv6: (text) => isIPv6(text) && !text.includes("%"),
  uuid: matching("(?:urn:uuid:)?[0-9A-Fa-f]{8}-(?:[0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}"),
  uri: addressRule(false, ""),
  "uri-reference": addressRule(true, ""),
  iri: addressRule(false, wide),
  "iri-reference": addressRule(true, wide),
  url: addressRule(false, wide),
  "uri-template": matching(template),
  "json-pointer": matching(pointer),
  "relative-json-pointer": matching(`(?:0|[1-9][0-9]*)(?:#|${pointer})`),
  byte: matching(`(?:${base64}{4})*(?:${base64}{2}==|${base64}{3}=)?`),
  regex: isRegex,
}

/**
 * Returns the rule of a format, as its standard has it; where standards leave a choice, it accepts
 * what some validator accepts. What is written is enforced by narrower patterns (`formats.ts`).
 */
export const formatRule = (format: string): FormatRule | undefined =>
  Object.hasOwn(rules, format) ? rules[format] : undefined
