import { halfAt } from "./float16.ts"
import { blocksOf, readNibbles } from "./ggml-blocks.ts"
import type { GgmlType, Levels } from "./ggml-types.ts"

/** What the levels 0 to 15 of IQ4_NL and IQ4_XS stand for (`kvalues_iq4nl` of ggml-common.h). */
const codes = Int8Array.from([
  -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113,
])

const scratch = new Uint8Array(32)

/** Returns a type whose blocks have so many groups of 32 levels. */
const coded = (
  name: string,
  blockBytes: number,
  groups: number,
  { read, units }: Pick<Levels, "read" | "units">,
): GgmlType => ({
  ...blocksOf(32 * groups)(name, blockBytes, (bytes, at, into, out) => {
    for (let group = 0; group < groups; group++) {
      const { scale } = read(bytes, (at / blockBytes) * groups + group, scratch)
      for (let j = 0; j < 32; j++) into[out + 32 * group + j] = scale * codes[scratch[j]!]!
    }
  }),
  levels: { bits: 4, hasMinimums: false, codes, read, ...(units && { units }) },
})

const nonLinearBytes = 18

const nonLinear = coded("IQ4_NL", nonLinearBytes, 1, {
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
const extraSmall = coded("IQ4_XS", extraSmallBytes, 8, {
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
