import sharp from "sharp"
import { expect, test } from "vitest"
import { processedBy, towerFolder } from "../testing/fixtures.ts"
import { visionConfig } from "../vision/vision-config.ts"
import { decodeImage } from "./decode-image.ts"

/** Slopes in two directions, and squares with sharp edges; fixtures/make-towers.py draws the same. */
const drawn = (width: number, height: number): Promise<Buffer> => {
  const slope = (at: number, period: number) =>
    Math.floor((Math.abs((at % (2 * period)) - period) * 255) / period)
  const pixels = Array.from({ length: width * height }, (_, i) => {
    const [x, y] = [i % width, Math.floor(i / width)]
    const isLight = ((x >> 4) + (y >> 4)) & 1
    return [slope(2 * x + y, 97), slope(x + 3 * y, 61), isLight ? 230 : 25]
  })
  const raw = { width, height, channels: 3 } as const
  return sharp(Uint8Array.from(pixels.flat()), { raw }).png().toBuffer()
}

test.each(["clip", "siglip", "siglip2"])(
  "pictures become the pixels of %s's image processor",
  async (name) => {
    const { preprocessing } = visionConfig(towerFolder(name))
    for (const { width, height, size, pixels } of processedBy(name)) {
      const decoded = await decodeImage(await drawn(width, height), preprocessing)
      if ("refused" in decoded) throw new Error(decoded.refused)
      if (size) expect([decoded.width, decoded.height]).toEqual(size)
      const wanted = Buffer.from(pixels, "base64")
      expect(decoded.pixels).toHaveLength(wanted.length)
      const gaps = [...decoded.pixels].map((value, i) => Math.abs(value - wanted[i]!))
      const mean = gaps.reduce((sum, gap) => sum + gap) / gaps.length
      // PIL filters in one go; libvips first takes means of whole squares where it shrinks more than
      // twice, which shows at sharp edges
      expect(mean).toBeLessThan(2)
      expect(Math.max(...gaps)).toBeLessThan(16)
    }
  },
)
