import fc from "fast-check"
import sharp from "sharp"
import { expect, it } from "vitest"
import { plainImage } from "../../testing/images.ts"
import { runs } from "../../testing/property.ts"
import { withParameters } from "./png-text.ts"
import { readPng } from "./testing/png-reader.ts"

const png = await plainImage(16, 8, "red").png().toBuffer()

it("any parameters come back from a PNG reader", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.record({ prompt: fc.string({ unit: "binary", maxLength: 60 }), seed: fc.nat() }),
      async (parameters) => {
        const { comments } = await sharp(withParameters(png, parameters)).metadata()
        expect(JSON.parse(comments?.[0]?.text ?? "")).toEqual(parameters)
      },
    ),
    { numRuns: runs(80) },
  )
})

it("leaves the picture as it was", async () => {
  const file = withParameters(png, { prompt: "🍎" })
  const read = await readPng(file.toString("base64"))
  expect(read).toEqual({ width: 16, height: 8, parameters: { prompt: "🍎" } })
  const pixels = (bytes: Uint8Array) => sharp(bytes).raw().toBuffer()
  expect(await pixels(file)).toEqual(await pixels(png))
})

it("is ASCII, as the chunk is Latin-1", () => {
  const file = withParameters(png, { prompt: "é🍎\n\u007f" })
  const text = file.subarray(33, file.indexOf("IDAT") - 4).toString("latin1")
  expect(text).toContain('tEXtparameters\0{"prompt":"\\u00e9\\ud83c\\udf4e\\n\\u007f"}')
})

/** The checksum of PNG, third edition, annex D, bit by bit. */
const checksum = (bytes: Uint8Array): number => {
  let sum = 0xffffffff
  for (const byte of bytes) {
    sum ^= byte
    for (let bit = 0; bit < 8; bit++) sum = sum & 1 ? (sum >>> 1) ^ 0xedb88320 : sum >>> 1
  }
  return (sum ^ 0xffffffff) >>> 0
}

it("stands behind the header, each chunk with its checksum", () => {
  const file = withParameters(png, { prompt: "🍎", seed: 1 })
  const types = []
  for (let at = 8; at < file.length; ) {
    const length = file.readUInt32BE(at)
    const typed = file.subarray(at + 4, at + 8 + length)
    types.push(typed.toString("latin1", 0, 4))
    expect(file.readUInt32BE(at + 8 + length)).toBe(checksum(typed))
    at += 12 + length
  }
  expect(types.slice(0, 2)).toEqual(["IHDR", "tEXt"])
  expect(types.at(-1)).toBe("IEND")
})
