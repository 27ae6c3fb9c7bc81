import { halfAt } from "./float16.ts"
import { levelled, readNibbles } from "./ggml-blocks.ts"

/** What the levels 0 to 15 of IQ4_NL and IQ4_XS stand for (`kvalues_iq4nl` of ggml-common.h). */
const codes = Int8Array.from([
  -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113,
])

const coded = { bits: 4, hasMinimums: false, codes } as const

const nonLinearBytes = 18

const nonLinear = levelled("IQ4_NL", nonLinearBytes, 1, {
  ...coded,
  read: (bytes, group, into) => {
    const at = group * nonLinearBytes
    readNibbles(bytes, at + 2, into)
    return { scale: halfAt(bytes, at), minimum: 0 }
  },
})

const extraSmallBytes = 136

/**
 * A half, then for eight groups of 32 a scale of 6 bits: the two high ones in a word of 16 bits, the
 * four low ones in nibbles.
 */
const extraSmall = levelled("IQ4_XS", extraSmallBytes, 8, {
  ...coded,
  read: (bytes, number, into) => {
    const at = Math.floor(number / 8) * extraSmallBytes
    const group = number % 8
    readNibbles(bytes, at + 8 + 16 * group, into)
    const high = bytes[at + 2]! | (bytes[at + 3]! << 8)
    const low = bytes[at + 4 + (group >> 1)]! >> (4 * (group & 1))
    const scale = (low & 15) | (((high >> (2 * group)) & 3) << 4)
    return { scale: halfAt(bytes, at) * (scale - 32), minimum: 0 }
  },
  units: (bytes, n) => ({ scale: halfAt(bytes, n * extraSmallBytes), minimum: 0 }),
})

export const iq4 = { nonLinear, extraSmall }
