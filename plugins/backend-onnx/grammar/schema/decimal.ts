/** A number in decimal notation, exactly: `digits` / 10^`scale`. */
export interface Decimal {
  readonly digits: bigint
  readonly scale: number
}

/** Returns the shortest decimal that reads as the number: what stands in a schema. */
export const decimalOf = (value: number): Decimal => {
  const [, sign, whole, fraction = "", exponent = "0"] =
    /^(-?)(\d+)(?:\.(\d+))?(?:e([+-]\d+))?$/.exec(String(value))!
  const digits = BigInt(sign! + whole! + fraction)
  const scale = fraction.length - Number(exponent)
  return scale >= 0 ? { digits, scale } : { digits: digits * power(-scale), scale: 0 }
}

/** Returns the number without an exponent. */
export const textOf = ({ digits, scale }: Decimal): string => {
  const [, sign, whole] = /^(-?)(\d+)$/.exec(String(digits))!
  const all = whole!.padStart(scale + 1, "0")
  const point = all.length - scale
  return `${sign}${all.slice(0, point)}${scale > 0 ? "." : ""}${all.slice(point)}`
}

export const power = (exponent: number): bigint => 10n ** BigInt(exponent)

/** Returns the nearest double. */
export const numberOf = ({ digits, scale }: Decimal): number => Number(`${digits}e-${scale}`)

export const floorDivide = (a: bigint, b: bigint): bigint =>
  a / b - (a % b !== 0n && a < 0n !== b < 0n ? 1n : 0n)

export const ceilDivide = (a: bigint, b: bigint): bigint => -floorDivide(-a, b)

/** Returns the digits of the number at another scale, rounded up or down. */
export const atScale = (of: Decimal, scale: number, rounded: "up" | "down"): bigint =>
  scale >= of.scale
    ? of.digits * power(scale - of.scale)
    : (rounded === "up" ? ceilDivide : floorDivide)(of.digits, power(of.scale - scale))

const divisor = (a: bigint, b: bigint): bigint => (b === 0n ? a : divisor(b, a % b))

/** Returns the smallest whole multiple of `step` that has `scale` decimals at most. */
export const stepAtScale = (step: Decimal, scale: number): Decimal => {
  const unit = power(step.scale - scale)
  return { digits: step.digits / divisor(step.digits, unit), scale }
}
