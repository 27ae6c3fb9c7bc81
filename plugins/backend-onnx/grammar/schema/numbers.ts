import { numberFormats } from "./formats.ts"
import { isNumber } from "./json-value.ts"
import type { EnforcedSchema, Keywords } from "./reading.ts"

/** The largest integer used, up to which doubles and their multiples are exact. */
const most = 999_999_999_999_999
/** The margin to an exclusive bound near 0. */
const tiny = 1e-15
/**
 * llguidance needs a state for each remainder: with more, tokens of three digits cost too much for
 * a single mask.
 */
const largestStep = 1_000

const float = new Float64Array(1)
const bits = new BigInt64Array(float.buffer)

/** Returns a number just above `value`, with few digits. */
const above = (value: number): number => {
  if (Math.abs(value) < 1)
    return Number((value + tiny).toFixed(15)) > value
      ? Number((value + tiny).toFixed(15))
      : Number((value + 2 * tiny).toFixed(15))
  float[0] = value
  bits[0] = bits[0]! + (value > 0 ? 1n : -1n)
  return float[0]
}

const below = (value: number): number => -above(-value)

/** Whether a bound has few enough decimals: llguidance reads its digits as an integer. */
const fewDigits = (value: number): boolean =>
  (
    /\.(\d*)/.exec(
      value.toLocaleString("en-US", { useGrouping: false, maximumFractionDigits: 20 }),
    )?.[1] ?? ""
  ).length <= 17

interface Bound {
  readonly keyword: string
  /** Inclusive. */
  readonly least?: number
  readonly most?: number
}

const draft4 = (keyword: string, isExclusive: boolean, of: Keywords): boolean =>
  of.schema[keyword] === true && isExclusive

const boundsOf = (of: Keywords): readonly Bound[] => {
  const isBound = (value: unknown): value is number | boolean =>
    isNumber(value) || typeof value === "boolean"
  const minimum = of.value("minimum", isNumber, "a number")
  const maximum = of.value("maximum", isNumber, "a number")
  const over = of.value("exclusiveMinimum", isBound, "a number")
  const under = of.value("exclusiveMaximum", isBound, "a number")
  return [
    ...(minimum === undefined
      ? []
      : [
          {
            keyword: "minimum",
            least: draft4("exclusiveMinimum", true, of) ? above(minimum) : minimum,
          },
        ]),
    ...(maximum === undefined
      ? []
      : [
          {
            keyword: "maximum",
            most: draft4("exclusiveMaximum", true, of) ? below(maximum) : maximum,
          },
        ]),
    ...(isNumber(over) ? [{ keyword: "exclusiveMinimum", least: above(over) }] : []),
    ...(isNumber(under) ? [{ keyword: "exclusiveMaximum", most: below(under) }] : []),
  ]
}

/** Whether a step is exact in both decimal and binary. */
const isExactStep = (step: number): boolean =>
  (Number.isInteger(step) && step <= largestStep) || [0.5, 0.25, 0.125].includes(step)

const stepOf = (of: Keywords): number | undefined => {
  const step = of.value("multipleOf", isNumber, "a number")
  if (step === undefined) return undefined
  if (step > 0 && isExactStep(step)) {
    of.enforce("multipleOf")
    return step
  }
  of.refuse(
    "multipleOf",
    step <= largestStep
      ? "decimal steps are not exact in binary numbers, so that validators disagree about them"
      : `steps above ${largestStep} are not kept`,
  )
  return undefined
}

const rangeOf = (of: Keywords): readonly [number, number] => {
  let least = -most
  let largest = most
  for (const bound of boundsOf(of)) {
    const value = (bound.least ?? bound.most)!
    const isBeyond = bound.least === undefined ? value < -most : value > most
    if (isBeyond || !fewDigits(value))
      of.refuse(
        bound.keyword,
        isBeyond
          ? "beyond 15 digits numbers are not exact"
          : "more than 17 digits behind the point",
      )
    else {
      of.enforce(bound.keyword)
      least = Math.max(least, bound.least ?? -most)
      largest = Math.min(largest, bound.most ?? most)
    }
  }
  for (const keyword of ["exclusiveMinimum", "exclusiveMaximum"])
    if (typeof of.schema[keyword] === "boolean") of.enforce(keyword)
  const format = numberFormats[String(of.schema.format)]
  if (format) of.enforce("format")
  return [Math.max(least, format?.[0] ?? least), Math.min(largest, format?.[1] ?? largest)]
}

const within = (least: number, largest: number, step: number): EnforcedSchema => {
  const [from, to] = [Math.ceil(least / step) * step, Math.floor(largest / step) * step]
  if (from > to) return false
  return {
    type: Number.isInteger(step) ? "integer" : "number",
    minimum: from + 0,
    maximum: to + 0,
    ...(step !== 1 && { multipleOf: step }),
  }
}

/**
 * Reads the keywords of numbers. Numbers are written without an exponent and with at most 15
 * integer digits: none overflows or is rounded over a bound.
 */
export const readNumber = (of: Keywords, isInteger: boolean): EnforcedSchema => {
  const step = stepOf(of)
  const [least, largest] = rangeOf(of)
  // an integer step applies to integers; a fractional step below 1 does not restrict them
  if (step !== undefined && !(isInteger && step < 1)) return within(least, largest, step)
  if (isInteger) return within(least, largest, 1)
  return least > largest ? false : { type: "number", minimum: least, maximum: largest }
}
