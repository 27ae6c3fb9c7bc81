import fc from "fast-check"
import sharp from "sharp"
import { describe, expect, it } from "vitest"
import {
  black,
  blue,
  brokenImages,
  exactJpeg,
  green,
  plainImage,
  quarters,
  red,
  unusualImages,
  writtenPng,
} from "../../../testing/images.ts"
import { runs } from "../../../testing/property.ts"
import type { ImagePreprocessing } from "../architectures/image-preprocessing.ts"
import { decodeImage, maxPixels } from "./decode-image.ts"

const [unusual, broken] = await Promise.all([unusualImages(), brokenImages()])

const of = (
  resize: ImagePreprocessing["resize"],
  width: number,
  height = width,
): ImagePreprocessing => ({
  width,
  height,
  resize,
  kernel: "nearest",
  mean: [0, 0, 0],
  std: [1, 1, 1],
  rescale: 1 / 255,
})
const stretched = (width: number, height = width) =>
  of({ mode: "exact", width, height }, width, height)

type Pixel = readonly number[]
const pixelsOf = async (bytes: Uint8Array, preprocessing = stretched(2)) => {
  const decoded = await decodeImage(bytes, preprocessing)
  if (!("pixels" in decoded)) throw new Error(decoded.refused)
  const { pixels } = decoded
  expect(pixels).toHaveLength(3 * preprocessing.width * preprocessing.height)
  return Array.from({ length: pixels.length / 3 }, (_, at) => [
    ...pixels.subarray(3 * at, 3 * at + 3),
  ])
}
const isNear = (a: Pixel, b: Pixel, most: number) =>
  a.every((value, i) => Math.abs(value - b[i]!) <= most)
const expectNear = (found: readonly Pixel[], wanted: readonly Pixel[], most: number) => {
  expect(found).toHaveLength(wanted.length)
  for (const [at, pixel] of found.entries())
    if (!isNear(pixel, wanted[at]!, most)) expect(found).toEqual(wanted)
}
const four = (pixel: Pixel) => Array<Pixel>(4).fill(pixel)
const all = [red, green, blue, black]

describe("an image", () => {
  const image = () => quarters(16, 16)
  it.each([
    ["PNG", () => image().png().toBuffer(), 0],
    ["JPEG", () => exactJpeg(image()), 4],
    ["WebP", () => image().webp({ lossless: true }).toBuffer(), 0],
    ["GIF", () => image().gif().toBuffer(), 0],
  ])("in %s has its pixels row by row", async (_, bytes, most) => {
    expectNear(await pixelsOf(await bytes()), all, most)
  })

  it.each(Object.entries(unusual))("that is special is read: %s", async (what, bytes) => {
    // the colours of a press have no pure red
    expectNear(await pixelsOf(bytes), four(red), what.includes("CMYK") ? 40 : 2)
  })

  it("of which a half is transparent lies on white", async () => {
    const half = (alpha: number, depth: "srgb" | "rgb16") =>
      sharp({
        create: { width: 8, height: 8, channels: 4, background: { r: 255, g: 0, b: 0, alpha } },
      })
        .toColourspace(depth)
        .png()
        .toBuffer()
    for (const depth of ["srgb", "rgb16"] as const) {
      expectNear(await pixelsOf(await half(0.5, depth)), four([255, 127, 127]), 1)
      expectNear(await pixelsOf(await half(0, depth)), four([255, 255, 255]), 0)
    }
    const webp = await sharp(await half(0.5, "srgb"), {})
      .webp({ lossless: true })
      .toBuffer()
    expectNear(await pixelsOf(webp), four([255, 127, 127]), 1)
  })

  it("in shades of grey has three channels", async () => {
    for (const space of ["b-w", "grey16"] as const) {
      const bytes = await plainImage(8, 8, "#808080").toColourspace(space).png().toBuffer()
      expectNear(await pixelsOf(bytes), four([128, 128, 128]), 1)
    }
    expectNear(await pixelsOf(writtenPng(9, 9)), four(black), 0)
  })

  // the corners that a viewer shows, by the EXIF standard, where A B C D are stored
  it.each([
    [1, "ABCD"],
    [2, "BADC"],
    [3, "DCBA"],
    [4, "CDAB"],
    [5, "ACBD"],
    [6, "CADB"],
    [7, "DBCA"],
    [8, "BDAC"],
  ])("with EXIF orientation %i is turned upright", async (orientation, corners) => {
    const bytes = await exactJpeg(quarters(24, 16).withMetadata({ orientation }))
    const wanted = [...corners].map((corner) => all["ABCD".indexOf(corner)]!)
    expectNear(await pixelsOf(bytes), wanted, 4)
  })
})

describe("an image of another shape", () => {
  // three parts: red, green, blue
  const wide = () =>
    quarters(24, 8, [red, blue, red, blue])
      .composite([{ input: { create: { width: 8, height: 8, channels: 3, background: "lime" } } }])
      .png()
      .toBuffer()
  it("is cut to its middle", async () => {
    const square = of({ mode: "shortest-edge", edge: 2 }, 2)
    expectNear(await pixelsOf(await wide(), square), four(green), 0)
  })

  it("is shown whole, on white", async () => {
    const square = of({ mode: "longest-edge", edge: 8 }, 8)
    const rows = await pixelsOf(await quarters(16, 8).png().toBuffer(), square)
    const white = [255, 255, 255]
    expect([rows[0], rows[15], rows[48], rows[63]]).toEqual([white, white, white, white])
    expectNear([rows[16]!, rows[23]!, rows[40]!, rows[47]!], all, 0)
  })

  it("that is turned is measured as it is shown", async () => {
    const square = of({ mode: "longest-edge", edge: 4 }, 4)
    const tall = await exactJpeg(plainImage(8, 16, "red").withMetadata({ orientation: 6 }))
    const rows = await pixelsOf(tall, square)
    const row = (y: number) => rows.slice(4 * y, 4 * y + 4)
    expect(row(0)).toEqual(four([255, 255, 255]))
    expectNear(row(1), four(red), 4)
  })
})

describe("what is no image", () => {
  it.each(Object.entries(broken))("is refused: %s", async (_, bytes) => {
    expect(await decodeImage(bytes, stretched(2))).toEqual({ refused: expect.any(String) })
  })

  it("is refused in any other format, and says why", async () => {
    const svg = Buffer.from(`<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>`)
    const image = () => plainImage(9, 9, "red")
    const others = [svg, await image().tiff().toBuffer(), await image().avif().toBuffer()]
    for (const bytes of [...others, new Uint8Array(), Buffer.from("%PDF-1.7\n")])
      expect(await decodeImage(bytes, stretched(2))).toEqual({
        refused: "is damaged, or not a PNG, JPEG, WebP or GIF",
      })
    const { refused } = (await decodeImage(
      writtenPng(30_000, 30_000, new Uint8Array(9)),
      stretched(2),
    )) as { refused: string }
    expect(refused).toBe(`has more than ${maxPixels.toLocaleString("en")} pixels`)
  })

  it("is never a fault of ours, whatever bytes change", async () => {
    const whole = await Promise.all([
      quarters(16, 16).png().toBuffer(),
      quarters(16, 16).jpeg().toBuffer(),
      quarters(16, 16).webp().toBuffer(),
      quarters(16, 16).gif().toBuffer(),
    ])
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...whole),
        fc.array(fc.tuple(fc.nat(4_000), fc.integer({ min: 1, max: 255 })), { maxLength: 4 }),
        fc.nat(4_000),
        async (bytes, changes, end) => {
          const changed = Buffer.from(bytes.subarray(0, end))
          for (const [at, bits] of changes)
            if (at < changed.length) changed[at] = changed[at]! ^ bits
          const decoded = await decodeImage(changed, stretched(4, 3))
          if ("pixels" in decoded) expect(decoded.pixels).toHaveLength(36)
        },
      ),
      { numRuns: runs(400) },
    )
  })
})
