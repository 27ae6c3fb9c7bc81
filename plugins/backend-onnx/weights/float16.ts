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

const word = new Uint32Array(1)
const wordAsFloat = new Float32Array(word.buffer)

/** bfloat16, little-endian: the upper half of a binary32. */
export const bfloatAt = (bytes: Uint8Array, offset: number): number => {
  word[0] = ((bytes[offset]! | (bytes[offset + 1]! << 8)) << 16) >>> 0
  return wordAsFloat[0]!
}
