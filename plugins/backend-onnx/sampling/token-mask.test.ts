import fc from "fast-check"
import { expect, test } from "vitest"
import { runs } from "../../../testing/property.ts"
import { allowedTokens, allows } from "./token-mask.ts"

const word = fc.oneof(
  fc.constantFrom(0, 1, 0x8000_0000, 0xffff_ffff),
  fc.integer({ min: 0, max: 0xffff_ffff }),
)
const masks = fc.array(word, { maxLength: 20, size: "max" }).map((words) => Uint32Array.from(words))

test("lists what is allowed, unless it is more than asked for", () => {
  fc.assert(
    fc.property(masks, fc.nat(700), fc.nat(700), (mask, vocabulary, most) => {
      const known = Math.min(vocabulary, mask.length * 32)
      const wanted = Array.from({ length: known }, (_, id) => id).filter((id) => allows(mask, id))
      expect(allowedTokens(mask, vocabulary, vocabulary)).toEqual(wanted)
      for (const limit of [most, wanted.length, wanted.length - 1, wanted.length / 2])
        if (limit >= 0)
          expect(allowedTokens(mask, vocabulary, limit)).toEqual(
            wanted.length > limit ? undefined : wanted,
          )
    }),
    { numRuns: runs(1_000) },
  )
})
