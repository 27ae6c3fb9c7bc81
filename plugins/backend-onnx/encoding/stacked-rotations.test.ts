import { createHash } from "node:crypto"
import { expect, test } from "vitest"
import { seededRandom } from "../sampling/random.ts"
import { exactPrefix, stackedRotations } from "./stacked-rotations.ts"

const [inputs, outputs] = [384, 2048]
const map = stackedRotations(inputs, outputs)

const random = seededRandom(9)
const gaussian = () => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random())
const mapped = (vector: readonly number[]) =>
  Array.from({ length: outputs }, (_, row) => {
    let sum = 0
    for (let column = 0; column < inputs; column++)
      sum += vector[column]! * map[row * inputs + column]!
    return sum
  })
const cosine = (a: readonly number[], b: readonly number[], d = a.length) => {
  let [ab, aa, bb] = [0, 0, 0]
  for (let i = 0; i < d; i++) {
    ab += a[i]! * b[i]!
    aa += a[i]! ** 2
    bb += b[i]! ** 2
  }
  return ab / Math.sqrt(aa * bb)
}

// pairs of all degrees of similarity
const pairs = Array.from({ length: 40 }, (_, i) => {
  const a = Array.from({ length: inputs }, gaussian)
  const b = a.map((value) => value * (i / 20 - 1) + gaussian())
  return { a, b, exact: cosine(a, b), left: mapped(a), right: mapped(b) }
})
const rms = (d: number) =>
  Math.sqrt(
    pairs.reduce((sum, { exact, left, right }) => sum + (cosine(left, right, d) - exact) ** 2, 0) /
      pairs.length,
  )

test("keeps norms and cosines, whole and at the prefixes that end with a block", () => {
  for (const { a, left } of pairs) expect(Math.hypot(...left)).toBeCloseTo(Math.hypot(...a), 4)
  for (const d of [384, 768, 1152, 1536, 2048]) expect(rms(d)).toBeLessThan(1e-5)
})

test("other prefixes degrade as a random projection does, or better", () => {
  for (const d of [8, 32, 64, 128, 256])
    expect(rms(d)).toBeLessThan(1.5 * Math.sqrt((1 - d / inputs) / d))
  for (const d of [400, 512, 700, 1024, 1300, 1792]) expect(rms(d)).toBeLessThan(0.03)
})

test("knows its shortest exact prefix", () => {
  expect(exactPrefix(inputs, outputs)).toBe(384)
  expect(rms(383)).toBeGreaterThan(1e-5)
  expect([768, 1024, 1025, 2048].map((size) => exactPrefix(size, 2048))).toEqual([
    768, 1024, 2048, 2048,
  ])
  expect(exactPrefix(1536, 2048, true)).toBe(1536)
})

test("is the same map for ever: vectors that are stored must stay comparable", () => {
  expect(createHash("sha256").update(new Uint8Array(map.buffer)).digest("hex").slice(0, 16)).toBe(
    "7587f29dea33d07d",
  )
})

test("fits vectors of any length up to the space's", () => {
  for (const size of [1, 3, 7, 16]) {
    const small = stackedRotations(size, 16)
    for (let a = 0; a < size; a++)
      for (let b = 0; b < size; b++) {
        const product = Array.from(
          { length: 16 },
          (_, row) => small[row * size + a]! * small[row * size + b]!,
        ).reduce((x, y) => x + y)
        expect(product).toBeCloseTo(a === b ? 1 : 0, 5)
      }
  }
  expect(() => stackedRotations(17, 16)).toThrow(/fit/)
})
