/** Money is an integer count of micro-rupiah: 1 Rp = 1,000,000 micros. Never a float. */
export type Micros = bigint

export const lesser = (a: Micros, b: Micros): Micros => (a < b ? a : b)

/**
 * `"2.5"` -> 2500000n. Throws a RangeError when the text is no plain decimal with at most 6 places.
 */
export const parseRupiah = (text: string): Micros => {
  const match = /^(-?)(\d{1,15})(?:\.(\d{1,6}))?$/.exec(text)
  if (!match) throw new RangeError(`"${text}" is no plain decimal with at most 6 places`)
  const [, sign, whole = "0", fraction = ""] = match
  const micros = BigInt(whole) * 1_000_000n + BigInt(fraction.padEnd(6, "0"))
  return sign ? -micros : micros
}

/**
 * `(2500n, 3)` -> `"2.5"`: a plain decimal of a whole number of units, of which 10^places make one.
 */
export const formatDecimal = (units: bigint, places: number): string => {
  const [absolute, one] = [units < 0n ? -units : units, 10n ** BigInt(places)]
  const fraction = (absolute % one).toString().padStart(places, "0").replace(/0+$/, "")
  return `${units < 0n ? "-" : ""}${absolute / one}${fraction && `.${fraction}`}`
}

/** 2500000n -> `"2.5"`: the plain decimal of `X-Cost-IDR`. */
export const formatRupiah = (micros: Micros): string => formatDecimal(micros, 6)

/**
 * The JSON number of an amount (`..._idr`). Exact up to 8 billion rupiah (a double distinguishes
 * millionths below 2^33).
 */
export const rupiahNumber = (micros: Micros): number => {
  const exact = Number(micros)
  // both are exact then, so the quotient is the double that is nearest to the decimal
  return Number.isSafeInteger(exact) ? exact / 1_000_000 : Number(formatRupiah(micros))
}

const digits = (n: number) => ({ minimumFractionDigits: n, maximumFractionDigits: n })

/**
 * For reading: `Rp 9,231`, `Rp 12.50`, `Rp 0.0240`; the larger, the fewer decimals. The dashboard
 * writes amounts like this, too. Exact is `formatRupiah`.
 */
export const displayRupiah = (micros: Micros): string => {
  const size = Math.abs(rupiahNumber(micros))
  const places = [0.0001, 1, 1000].filter((step) => size < step).length * 2
  return `${micros < 0n ? "-" : ""}Rp ${size.toLocaleString("en", digits(size && places))}`
}
