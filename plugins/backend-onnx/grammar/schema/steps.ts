import {
  atScale,
  ceilDivide,
  type Decimal,
  decimalOf,
  floorDivide,
  numberOf,
  power,
  stepAtScale,
} from "./decimal.ts"
import { anyOf, type EnforcedSchema } from "./reading.ts"

/**
 * llguidance needs a state for each remainder: with more, tokens of three digits cost too much for
 * a single mask.
 */
const largestStep = 1_000n
/** llguidance multiplies two steps in 32 bits where two schemas apply. */
const mostUnits = 2n ** 32n / largestStep
/** Digits of a multiple: as many as a double keeps, so that all validators read the same number. */
const mostDigits = 15
/** A range with fewer multiples is written as a list. */
const fewMultiples = 32n

/** Whether llguidance reads the step as the same decimal: it multiplies the double by ten. */
const isRead = ({ digits, scale }: Decimal): boolean => {
  let value = numberOf({ digits, scale })
  let read = 0
  for (; value % 1 !== 0 && read <= scale; read++) value *= 10
  return read <= scale && BigInt(value) * power(scale - read) === digits
}

export const isWritableStep = (step: Decimal): boolean =>
  step.digits <= largestStep && step.digits * power(step.scale) <= mostUnits && isRead(step)

/** Returns the largest step whose multiples hold all multiples of `step`, if any is writable. */
export const coarserStep = ({ digits, scale }: Decimal): Decimal | undefined => {
  for (let part = largestStep; part > 0n; part--)
    if (digits % part === 0n && isWritableStep({ digits: part, scale }))
      return { digits: part, scale }
  return undefined
}

/**
 * Returns the beginnings of the bounds' decimals that lie within them, `99.9` of `99.95`.
 * llguidance's range leaves these out: after the 9 it wants another digit.
 */
export const shortenedBounds = (least: number, most: number): readonly number[] => {
  const found = new Set<number>()
  for (const bound of [least, most]) {
    const { digits, scale } = decimalOf(bound)
    for (let kept = 1; kept < scale; kept++) {
      // towards 0: a beginning of the digits
      const value = numberOf({ digits: digits / power(scale - kept), scale: kept })
      if (value >= least && value <= most) found.add(value)
    }
  }
  return [...found]
}

/**
 * Fewer decimals are written by a wider step, where llguidance wants all decimals of the narrower
 * one: 1.5 beside 1.25 of 0.25.
 */
const shorterSteps = (step: Decimal): readonly Decimal[] =>
  Array.from({ length: Math.max(step.scale - 1, 0) }, (_, i) => i + 1)
    .filter((scale) => power(step.scale - scale) <= step.digits)
    .map((scale) => stepAtScale(step, scale))
    .filter(isWritableStep)

/** Returns the multiples of a writable step between the bounds. */
export const multiplesBetween = (step: Decimal, least: number, most: number): EnforcedSchema => {
  const { digits, scale } = step
  const reach = numberOf({ digits: (power(mostDigits) / digits) * digits, scale })
  const lowest = atScale(decimalOf(Math.max(least, -reach)), scale, "up")
  const highest = atScale(decimalOf(Math.min(most, reach)), scale, "down")
  const [from, to] = [ceilDivide(lowest, digits), floorDivide(highest, digits)]
  if (from > to) return false
  const numberAt = (multiple: bigint) => numberOf({ digits: multiple * digits, scale }) + 0
  if (to - from < fewMultiples)
    return {
      enum: Array.from({ length: Number(to - from) + 1 }, (_, i) => numberAt(from + BigInt(i))),
    }
  const [minimum, maximum] = [numberAt(from), numberAt(to)]
  const range = (one: Decimal): EnforcedSchema => ({
    type: one.scale === 0 ? "integer" : "number",
    minimum,
    maximum,
    ...((one.digits !== 1n || one.scale > 0) && { multipleOf: numberOf(one) }),
  })
  const short = shortenedBounds(minimum, maximum).filter(
    (value) => atScale(decimalOf(value), scale, "up") % digits === 0n,
  )
  return anyOf([
    range(step),
    ...shorterSteps(step).map(range),
    ...(short.length > 0 ? [{ enum: short }] : []),
  ])
}
