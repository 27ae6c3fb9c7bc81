import fc from "fast-check"
import { expect, it } from "vitest"
import { displayRupiah, formatRupiah, parseRupiah, rupiahNumber } from "./money.ts"

it("formats and parses plain decimals with up to 6 places", () => {
  expect([0n, 1n, 2_500_000n, 1_000_000n, -20n, -1_500_000n].map(formatRupiah)).toEqual([
    "0",
    "0.000001",
    "2.5",
    "1",
    "-0.00002",
    "-1.5",
  ])
  expect(["0", "2.5", "0.000001", "-3", "15000"].map(parseRupiah)).toEqual([
    0n,
    2_500_000n,
    1n,
    -3_000_000n,
    15_000_000_000n,
  ])
})

it.each(["", "1.", ".5", "1.0000001", "1e3", "+1", " 1", "1,5", "NaN", "1234567890123456", "0x1"])(
  "%j is no amount",
  (text) => {
    expect(() => parseRupiah(text)).toThrow(RangeError)
  },
)

it("every amount survives the text, and the JSON number up to 8 billion rupiah", () => {
  fc.assert(
    fc.property(
      fc.bigInt({ min: -(10n ** 20n), max: 10n ** 20n }),
      (micros) => parseRupiah(formatRupiah(micros)) === micros,
    ),
  )
  fc.assert(
    fc.property(
      fc.bigInt({ min: -(8n * 10n ** 15n), max: 8n * 10n ** 15n }),
      (micros) =>
        parseRupiah(
          rupiahNumber(micros)
            .toFixed(6)
            .replace(/^-0\.0+$/, "0"),
        ) === micros,
    ),
  )
})

it("the JSON number is the one that is nearest to the text", () => {
  fc.assert(
    fc.property(
      fc.bigInt({ min: -(10n ** 19n), max: 10n ** 19n }),
      (micros) => rupiahNumber(micros) === Number(formatRupiah(micros)),
    ),
  )
})

it.each([
  ["0", "Rp 0"],
  ["0.000002", "Rp 0.000002"],
  ["0.024", "Rp 0.0240"],
  ["12.5", "Rp 12.50"],
  ["-9231.4", "-Rp 9,231"],
  ["1000000", "Rp 1,000,000"],
])("reads %s as %s", (text, shown) => {
  expect(displayRupiah(parseRupiah(text))).toBe(shown)
})
