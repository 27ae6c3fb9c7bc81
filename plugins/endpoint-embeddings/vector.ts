import { endianness } from "node:os"

/** The first `dimensions` numbers, scaled to Euclidean norm 1. A prefix of zeros has no direction and stays as it is. */
export const shorten = (vector: Float32Array, dimensions: number): Float32Array => {
  if (dimensions >= vector.length) return vector
  const prefix = vector.slice(0, dimensions)
  let square = 0
  for (const x of prefix) square += x * x
  return square === 0 ? prefix : prefix.map((x) => x / Math.sqrt(square))
}

const littleEndian = endianness() === "LE"

/** Little-endian float32, as the official client reads it. */
export const toBase64 = (vector: Float32Array): string => {
  const bytes = Buffer.from(vector.slice().buffer)
  return (littleEndian ? bytes : bytes.swap32()).toString("base64")
}
