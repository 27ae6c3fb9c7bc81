import fc from "fast-check"
import sharp from "sharp"
import { expect, test } from "vitest"
import {
  exactJpeg,
  longWebp,
  manyScans,
  plainImage,
  unusualImages,
} from "../../../testing/images.ts"
import { runs } from "../../../testing/property.ts"
import { firstFrameOf, jpegScans } from "./format-bounds.ts"

const image = () => plainImage(40, 30, "red")

test("the scans of a JPEG are counted to its end, whatever is behind it or in its segments", async () => {
  const [plain, progressive] = [
    await exactJpeg(image()),
    await image().jpeg({ progressive: true }).toBuffer(),
  ]
  expect(jpegScans(plain)).toBe(1)
  expect(jpegScans(progressive)).toBe(10)
  expect(jpegScans(Buffer.concat([plain, progressive]))).toBe(1)
  expect(jpegScans(manyScans(99))).toBe(99)
  // a comment that holds a JPEG
  const comment = Buffer.concat([Buffer.from([0xff, 0xfe, 0, 0]), progressive])
  comment.writeUInt16BE(progressive.length + 2, 2)
  expect(jpegScans(Buffer.concat([plain.subarray(0, 2), comment, plain.subarray(2)]))).toBe(1)
})

test("of an animated WebP the first frame is left, and others stay as they are", async () => {
  const { "animated WebP": animated } = await unusualImages()
  expect(await sharp(animated!).metadata()).toMatchObject({ pages: 3 })
  const first = firstFrameOf(animated!)
  expect(await sharp(first).metadata()).toMatchObject({ width: 24, height: 16 })
  expect(await sharp(first).raw().toBuffer()).toEqual(await sharp(animated!).raw().toBuffer())
  for (const options of [{ lossless: true }, { lossless: false }]) {
    const still = await image().withMetadata({ orientation: 6 }).webp(options).toBuffer()
    expect(firstFrameOf(still)).toBe(still)
  }
  const one = await longWebp(1)
  expect(firstFrameOf(one)).toBe(one)
  expect(firstFrameOf(await longWebp(9))).toEqual(one)
})

test("any bytes are walked to their end", () => {
  const marked = fc.array(fc.constantFrom(0xff, 0xda, 0xd9, 0xd8, 0, 1, 2), { maxLength: 60 })
  fc.assert(
    fc.property(fc.oneof(fc.uint8Array(), marked), (bytes) => {
      expect(jpegScans(Buffer.from(bytes))).toBeLessThanOrEqual(bytes.length / 2)
      const chunks = Buffer.concat([
        Buffer.from("RIFF\0\0\0\0WEBPANMF", "latin1"),
        Buffer.from(bytes),
      ])
      expect(firstFrameOf(chunks).length).toBeLessThanOrEqual(chunks.length)
    }),
    { numRuns: runs(1_000) },
  )
})
