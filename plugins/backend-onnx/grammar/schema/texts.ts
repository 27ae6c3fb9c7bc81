import { enforcedFormats, formatPattern, judgedFormats, numberFormats } from "./formats.ts"
import { isCount } from "./json-value.ts"
import {
  PatternRefused,
  type WholePatterns,
  wholePattern,
  wholePatterns,
  widerPatterns,
} from "./pattern.ts"
import { allOf, type EnforcedSchema, type Keywords } from "./reading.ts"
import { unreadPattern } from "./validator/linear-pattern.ts"

const isText = (value: unknown): value is string => typeof value === "string"

/**
 * The maximum number of repetitions that llguidance handles; mandatory ones cost more beside a
 * pattern.
 */
const longest = 20_000
const longestLeast = 10_000

const any: WholePatterns = { patterns: [], least: 0, most: Number.POSITIVE_INFINITY }

const widerOrAny = (pattern: string): WholePatterns => {
  try {
    return widerPatterns(pattern)
  } catch (cause) {
    if (cause instanceof PatternRefused) return any
    throw cause
  }
}

const patternsOf = (of: Keywords): WholePatterns => {
  const pattern = of.value("pattern", isText, "a regular expression")
  if (pattern === undefined) return any
  try {
    const whole = wholePatterns(pattern)
    of.enforce("pattern")
    return whole
  } catch (cause) {
    if (!(cause instanceof PatternRefused)) throw cause
    const unread = unreadPattern(pattern)
    if (unread === undefined) of.guard("pattern")
    else of.refuse("pattern", unread)
    return widerOrAny(pattern)
  }
}

const formatOf = (of: Keywords): string | undefined => {
  const format = of.value("format", isText, "a string")
  if (format === undefined) return undefined
  const pattern = formatPattern(format)
  if (pattern !== undefined || Object.hasOwn(numberFormats, format)) of.enforce("format")
  else if (judgedFormats.includes(format)) of.guard("format")
  else
    of.note(
      "format",
      `is not kept; kept are ${[...enforcedFormats, ...judgedFormats, ...Object.keys(numberFormats)].join(", ")}`,
    )
  return pattern === undefined ? undefined : wholePattern(pattern)
}

const readLengths = (of: Keywords, least: number, most: number | undefined): void => {
  if (least > longest) of.refuse("minLength", `more than ${longest} characters are not written`)
  else if (least > longestLeast) of.guard("minLength")
  else if (of.has("minLength")) of.enforce("minLength")
  if (most !== undefined)
    of.enforce(
      "maxLength",
      most > longest ? `at most ${longest} characters are written` : undefined,
    )
}

/** Reads the keywords of strings. */
export const readText = (of: Keywords): EnforcedSchema => {
  const least = of.value("minLength", isCount, "a whole number that is not negative") ?? 0
  const most = of.value("maxLength", isCount, "a whole number that is not negative")
  readLengths(of, least, most)
  if (most !== undefined && least > most) return false
  const { patterns, ...reach } = patternsOf(of)
  const isNever = reach.least === Number.POSITIVE_INFINITY
  if (isNever || reach.least > (most ?? reach.least) || reach.most < least) return false
  const format = formatOf(of)
  const all = [...patterns, ...(format === undefined ? [] : [format])]
  // a bound that a pattern implies multiplies its states for nothing
  const lengths = {
    ...(least > reach.least && { minLength: Math.min(least, longestLeast) }),
    ...(most !== undefined && most < reach.most && { maxLength: Math.min(most, longest) }),
  }
  const first: EnforcedSchema = {
    type: "string",
    ...lengths,
    ...(all[0] !== undefined && { pattern: all[0] }),
  }
  return allOf([first, ...all.slice(1).map((pattern) => ({ type: "string", pattern }))])
}
