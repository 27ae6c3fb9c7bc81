const decodeHalf = (bits: number): number => {
  const sign = bits >> 15 ? -1 : 1
  const exponent = (bits >> 10) & 31
  const fraction = bits & 1023
  if (exponent === 0) return sign * fraction * 2 ** -24
  if (exponent === 31) return fraction ? Number.NaN : sign * Number.POSITIVE_INFINITY
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15)
}

// a table, because a quantized model holds millions of half-precision scales
const halves = Float32Array.from({ length: 65_536 }, (_, bits) => decodeHalf(bits))

/** IEEE 754 binary16, little-endian, at a byte offset. */
export const halfAt = (bytes: Uint8Array, offset: number): number =>
  halves[bytes[offset]! | (bytes[offset + 1]! << 8)]!

const infinity = 0x7c00

/** The bits of the nearest binary16 of a binary32, given by its bits; of two, the even one. */
const nearestHalf = (bits: number): number => {
  const [sign, size] = [(bits >>> 16) & 0x8000, bits & 0x7fffffff]
  // 65,520, from which on the nearest is infinity
  if (size >= 0x477ff000) return sign | infinity
  // 2^-14: smaller ones are multiples of 2^-24
  if (size < 0x38800000) {
    word[0] = size
    const steps = wordAsFloat[0]! * 2 ** 24
    const [whole, rest] = [Math.floor(steps), steps % 1]
    return sign | (whole + (rest > 0.5 || (rest === 0.5 && whole % 2 === 1) ? 1 : 0))
  }
  return sign | ((size - 0x38000000 + 0xfff + ((size >>> 13) & 1)) >>> 13)
}

/** Writes the nearest binary16 of each value; returns the first value that is too large for one. */
export const toHalves = (values: Float32Array, into: Uint16Array): number | undefined => {
  const words = new Uint32Array(values.buffer, values.byteOffset, values.length)
  for (let i = 0; i < words.length; i++) {
    const half = nearestHalf(words[i]!)
    if ((half & 0x7fff) === infinity) return values[i]
    into[i] = half
  }
  return undefined
}

const word = new Uint32Array(1)
const wordAsFloat = new Float32Array(word.buffer)

/** bfloat16, little-endian: the upper half of a binary32. */
export const bfloatAt = (bytes: Uint8Array, offset: number): number => {
  word[0] = ((bytes[offset]! | (bytes[offset + 1]! << 8)) << 16) >>> 0
  return wordAsFloat[0]!
}
