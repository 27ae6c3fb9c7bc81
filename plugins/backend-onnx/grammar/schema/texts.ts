import { enforcedFormats, formatPattern, numberFormats } from "./formats.ts"
import { isCount } from "./json-value.ts"
import { PatternRefused, wholePattern } from "./pattern.ts"
import { allOf, type EnforcedSchema, type Keywords } from "./reading.ts"

const isText = (value: unknown): value is string => typeof value === "string"

/**
 * The maximum number of repetitions that llguidance handles; mandatory ones cost more beside a
 * pattern.
 */
const longest = 20_000
const longestLeast = 10_000

const patternOf = (of: Keywords): string | undefined => {
  const pattern = of.value("pattern", isText, "a regular expression")
  if (pattern === undefined) return undefined
  try {
    const whole = wholePattern(pattern)
    of.enforce("pattern")
    return whole
  } catch (cause) {
    if (!(cause instanceof PatternRefused)) throw cause
    of.refuse("pattern", cause.message)
    return undefined
  }
}

const formatOf = (of: Keywords): string | undefined => {
  const format = of.value("format", isText, "a string")
  if (format === undefined) return undefined
  const pattern = formatPattern(format)
  if (pattern !== undefined || Object.hasOwn(numberFormats, format)) of.enforce("format")
  else
    of.note(
      "format",
      `is not kept; kept are ${[...enforcedFormats, ...Object.keys(numberFormats)].join(", ")}`,
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
  const patterns = [patternOf(of), formatOf(of)].filter((pattern) => pattern !== undefined)
  const lengths = {
    ...(least > 0 && { minLength: Math.min(least, longestLeast) }),
    ...(most !== undefined && { maxLength: Math.min(most, longest) }),
  }
  const first: EnforcedSchema = {
    type: "string",
    ...lengths,
    ...(patterns[0] !== undefined && { pattern: patterns[0] }),
  }
  return allOf([first, ...patterns.slice(1).map((pattern) => ({ type: "string", pattern }))])
}
