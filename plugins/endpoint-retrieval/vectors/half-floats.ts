/** The prefix of a vector that a space keeps, with Euclidean norm 1 (0 stays 0). */
export const unitPrefix = (vector: Float32Array, dimensions: number): Float32Array => {
  const prefix = vector.slice(0, dimensions)
  let squares = 0
  for (const value of prefix) squares += value * value
  const norm = Math.sqrt(squares)
  return norm > 0 ? prefix.map((value) => value / norm) : prefix
}

const float = new Float32Array(1)
const bits = new Uint32Array(float.buffer)

/** The nearest IEEE 754 half (ties to even) of a number within -1 to 1, as 16 bits. */
const halfOf = (value: number): number => {
  float[0] = value
  const all = bits[0]!
  const sign = (all >>> 16) & 0x8000
  const exponent = ((all >>> 23) & 0xff) - 112
  // below 2^-14 halves are multiples of 2^-24
  if (exponent <= 0) {
    const whole = Math.abs(value) * 16_777_216
    const low = Math.floor(whole)
    const rest = whole - low
    return sign | (low + (rest > 0.5 || (rest === 0.5 && low % 2 === 1) ? 1 : 0))
  }
  const kept = (exponent << 10) | ((all >>> 13) & 0x3ff)
  const rest = all & 0x1fff
  return sign | (kept + (rest > 0x1000 || (rest === 0x1000 && kept % 2 === 1) ? 1 : 0))
}

const floatOf = (half: number): number => {
  const sign = half & 0x8000 ? -1 : 1
  const exponent = (half >>> 10) & 0x1f
  const fraction = half & 0x3ff
  return exponent === 0
    ? sign * fraction * 2 ** -24
    : sign * (1 + fraction / 1024) * 2 ** (exponent - 15)
}

/** All halves as floats, by their bits: a look-up takes a tenth of the arithmetic. */
export const floatOfHalf = Float32Array.from({ length: 65_536 }, (_, half) => floatOf(half))

/** Numbers within -1 to 1 as halves. */
export const toHalves = (vector: Float32Array): Uint16Array => Uint16Array.from(vector, halfOf)

/** Numbers within -1 to 1, each as the half that is nearest to it. */
export const roundedToHalves = (vector: Float32Array): Float32Array =>
  Float32Array.from(toHalves(vector), (half) => floatOfHalf[half]!)
