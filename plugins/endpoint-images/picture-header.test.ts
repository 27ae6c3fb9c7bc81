import fc from "fast-check"
import sharp from "sharp"
import { describe, expect, it } from "vitest"
import { brokenImages, longWebp, plainImage, unusualImages } from "../../testing/images.ts"
import { runs } from "../../testing/property.ts"
import { pictureSize } from "./picture-header.ts"

// libvips reads every frame of a long animation for its size, which takes it 20 s
const { "WebP of 100,000 frames": long, ...unusual } = await unusualImages()
const broken = await brokenImages()

const shownSize = async (bytes: Uint8Array) => (await sharp(bytes).metadata()).autoOrient

describe("the size in an image's header", () => {
  it.each(Object.entries(unusual))("is that of libvips: %s", async (_, bytes) => {
    expect(pictureSize(bytes)).toEqual(await shownSize(bytes))
  })

  it("of an animation is found without its frames", async () => {
    expect(pictureSize(long!)).toEqual({ width: 1, height: 1 })
    expect(pictureSize(await longWebp(3))).toEqual({ width: 1, height: 1 })
  })

  const written = {
    jpeg: (orientation: number) => plainImage(24, 16, "red").withMetadata({ orientation }).jpeg(),
    png: (orientation: number) => plainImage(24, 16, "red").withMetadata({ orientation }).png(),
    webp: (orientation: number) => plainImage(24, 16, "red").withMetadata({ orientation }).webp(),
    lossless: (orientation: number) =>
      plainImage(24, 16, "red").withMetadata({ orientation }).webp({ lossless: true }),
  }
  it.each(Object.entries(written))("is turned as EXIF says: %s", async (_, write) => {
    for (let orientation = 1; orientation <= 8; orientation++) {
      const bytes = await write(orientation).toBuffer()
      expect(pictureSize(bytes), `orientation ${orientation}`).toEqual(await shownSize(bytes))
    }
  })

  it("is right for any size and format", async () => {
    const side = fc.integer({ min: 1, max: 300 })
    const format = fc.constantFrom("png", "jpeg", "webp", "gif")
    await fc.assert(
      fc.asyncProperty(side, side, format, fc.boolean(), async (width, height, to, lossless) => {
        const image = plainImage(width, height, "blue")
        const bytes = await (to === "webp"
          ? image.webp({ lossless })
          : image.toFormat(to as "png")
        ).toBuffer()
        expect(pictureSize(bytes)).toEqual({ width, height })
      }),
      { numRuns: runs(100) },
    )
  })

  it("that is broken is a reason or a size, never a fault", () => {
    const whole = [...Object.values(unusual), ...Object.values(broken)].filter(
      ({ length }) => length < 2 ** 20,
    )
    fc.assert(
      fc.property(
        fc.constantFrom(...whole),
        fc.array(fc.tuple(fc.nat(200), fc.nat(255)), { maxLength: 6 }),
        fc.nat(400),
        (bytes, changes, end) => {
          const changed = Buffer.from(bytes.subarray(0, end))
          for (const [at, byte] of changes) if (at < changed.length) changed[at] = byte
          const size = pictureSize(changed)
          if (typeof size === "string") return
          expect(size.width * size.height).toBeLessThanOrEqual(2 ** 26)
          expect(Math.min(size.width, size.height)).toBeGreaterThan(0)
        },
      ),
      { numRuns: runs(2_000) },
    )
  })
})
