import { atScale, type Decimal, decimalOf, numberOf, stepAtScale } from "./decimal.ts"
import { numberFormat } from "./formats.ts"
import { isNumber } from "./json-value.ts"
import { anyOf, type EnforcedSchema, type Keywords } from "./reading.ts"
import { coarserStep, isWritableStep, multiplesBetween, shortenedBounds } from "./steps.ts"

/** llguidance reads the digits before the point as integers of 64 bits. */
const mostInteger = 2 ** 63
const leastInteger = -(2 ** 63 - 1024)
export const mostNumber = 1e18
/** llguidance reads the digits behind the point as an integer. */
const mostDecimals = 17
/** The margin to an exclusive bound near 0. */
const tiny = 1e-15

/** A number of no other bounds than those of all numbers. */
export const anyNumber = (type: "number" | "integer"): EnforcedSchema => ({
  type,
  minimum: type === "integer" ? leastInteger : -mostNumber,
  maximum: type === "integer" ? mostInteger : mostNumber,
})

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

/** Rounds a bound inwards to as many decimals as llguidance reads. */
const rounded = (bound: number, direction: "up" | "down"): number => {
  const exact = decimalOf(bound)
  return exact.scale <= mostDecimals
    ? bound
    : numberOf({ digits: atScale(exact, mostDecimals, direction), scale: mostDecimals }) + 0
}

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

/** Returns the step whose multiples are written; undefined: any number. */
const stepOf = (of: Keywords, isInteger: boolean): Decimal | undefined => {
  const whole: Decimal | undefined = isInteger ? { digits: 1n, scale: 0 } : undefined
  const given = of.value("multipleOf", isNumber, "a number")
  if (given === undefined) return whole
  if (given <= 0) {
    of.refuse("multipleOf", "must be above 0")
    return whole
  }
  const step = isInteger ? stepAtScale(decimalOf(given), 0) : decimalOf(given)
  if (isWritableStep(step)) {
    of.enforce("multipleOf")
    return step
  }
  of.guard("multipleOf")
  return coarserStep(step)
}

const rangeOf = (of: Keywords, lowest: number, highest: number): readonly [number, number] => {
  let [least, most] = [lowest, highest]
  for (const bound of boundsOf(of)) {
    const isBeyond = bound.least === undefined ? bound.most! < lowest : bound.least > highest
    if (isBeyond) of.refuse(bound.keyword, "numbers of more than 18 digits are not written")
    else {
      of.enforce(bound.keyword)
      if (bound.least !== undefined) least = Math.max(least, rounded(bound.least, "up"))
      if (bound.most !== undefined) most = Math.min(most, rounded(bound.most, "down"))
    }
  }
  for (const keyword of ["exclusiveMinimum", "exclusiveMaximum"])
    if (typeof of.schema[keyword] === "boolean") of.enforce(keyword)
  const format = numberFormat(of.schema.format)
  if (format) of.enforce("format")
  return [Math.max(least, format?.[0] ?? least), Math.min(most, format?.[1] ?? most)]
}

/** Refuses bounds between which there are numbers, but none that is written. */
const refuseNarrow = (of: Keywords): void => {
  const bounds = boundsOf(of)
  const given = bounds.map((bound) => ({ ...bound, value: of.schema[bound.keyword] as number }))
  const least = given.filter((bound) => bound.least !== undefined)
  const most = given.filter((bound) => bound.most !== undefined)
  const isApart = least.every((low) =>
    most.every((high) => low.value < high.value || low.least! <= high.most!),
  )
  if (isApart && most[0])
    of.refuse(most[0].keyword, "the bounds differ only beyond 15 digits behind the point")
}

const integersBetween = (least: number, most: number): EnforcedSchema => {
  const [minimum, maximum] = [Math.ceil(least) + 0, Math.floor(most) + 0]
  return minimum <= maximum && { type: "integer", minimum, maximum }
}

const numbersBetween = (minimum: number, maximum: number): EnforcedSchema => {
  if (minimum > maximum) return false
  const short = shortenedBounds(minimum, maximum)
  return anyOf([
    { type: "number", minimum, maximum },
    ...(short.length > 0 ? [{ enum: short }] : []),
  ])
}

/**
 * Reads the keywords of numbers. Numbers are written without an exponent and with at most 19
 * digits before the point: none overflows or is rounded over a bound.
 */
export const readNumber = (of: Keywords, isInteger: boolean): EnforcedSchema => {
  const step = stepOf(of, isInteger)
  const [least, most] = isInteger
    ? rangeOf(of, leastInteger, mostInteger)
    : rangeOf(of, -mostNumber, mostNumber)
  if (!step) {
    if (least > most) refuseNarrow(of)
    return numbersBetween(least, most)
  }
  return step.digits === 1n && step.scale === 0 && isInteger
    ? integersBetween(least, most)
    : multiplesBetween(step, least, most)
}
