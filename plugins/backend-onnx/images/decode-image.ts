import sharp, { type Metadata, type Region, type Sharp } from "sharp"
import { placementOf } from "../architectures/image-placement.ts"
import type { ImagePreprocessing, Picture, Size } from "../architectures/image-preprocessing.ts"
import { firstFrameOf, jpegScans } from "./format-bounds.ts"

/** As many as 8192 x 8192 has: decoded within a second or so, in 400 MB at worst. */
export const maxPixels = 2 ** 26
// what JPEG, GIF and WebP can say; libvips needs a hundred bytes for each pixel of a PNG's row
const maxSide = 65_535
const limitSeconds = 10
/** Pixels times scans of a JPEG: each scan goes over all of them, 32 over the most there may be. */
const maxScanned = 32 * maxPixels
/** What beginning a scan takes, in pixels. */
const scanPixels = 2 ** 16
const formats = ["jpeg", "png", "webp", "gif"]

// the pool has as many threads as are to work, and no image comes twice
sharp.concurrency(1)
sharp.cache(false)
// libvips reads SVG, TIFF, PDF and more, by parsers that nobody needs here
sharp.block({ operation: ["VipsForeignLoad"] })
sharp.unblock({
  operation: [
    "VipsForeignLoadJpegBuffer",
    "VipsForeignLoadPngBuffer",
    "VipsForeignLoadWebpBuffer",
    "VipsForeignLoadNsgifBuffer",
  ],
})

/** What is wrong with a file. */
export interface Refused {
  readonly refused: string
}

export type DecodedImage = Picture | Refused

const white = "#ffffff"

const open = (bytes: Uint8Array): Sharp =>
  sharp(bytes, { failOn: "error", limitInputPixels: maxPixels, sequentialRead: true })

/** What is wrong with an image by its header; reads no pixels. */
const wrongHeader = ({ format, width, height }: Metadata, bytes: Buffer): string | undefined => {
  if (!formats.includes(format)) return "is no PNG, JPEG, WebP or GIF"
  if (width > maxSide || height > maxSide)
    return `has ${width} x ${height} pixels; a side may have ${maxSide.toLocaleString("en")}`
  if (format !== "jpeg") return undefined
  const scans = jpegScans(bytes)
  return Math.max(width * height, scanPixels) * scans > maxScanned
    ? `has ${scans} scans of ${width} x ${height} pixels, which take too long to decode`
    : undefined
}

const isWebp = (bytes: Buffer): boolean => bytes.toString("latin1", 8, 12) === "WEBP"

/** The image as it is shown, or a part of it, in sRGB, on white. */
export const upright = (bytes: Uint8Array, part?: Region): Sharp => {
  const whole = open(bytes).timeout({ seconds: limitSeconds }).autoOrient()
  return (part ? whole.extract(part) : whole).flatten({ background: white }).toColourspace("srgb")
}

const rendered = async (
  bytes: Uint8Array,
  preprocessing: ImagePreprocessing,
  size: Size,
): Promise<Picture> => {
  const { source, resized, final, left, top } = placementOf(preprocessing, size)
  const { width, height } = final
  const from = { left: Math.max(0, left), top: Math.max(0, top) }
  const border = { left: Math.max(0, -left), top: Math.max(0, -top) }
  const part = {
    width: Math.min(width - border.left, resized.width - from.left),
    height: Math.min(height - border.top, resized.height - from.top),
  }
  const pixels = await upright(bytes, source)
    .resize({
      ...resized,
      fit: "fill",
      kernel: preprocessing.kernel,
      // the quick way would drop rows and columns where it shrinks a JPEG
      fastShrinkOnLoad: false,
    })
    .extract({ ...from, ...part })
    .extend({
      ...border,
      right: width - border.left - part.width,
      bottom: height - border.top - part.height,
      background: white,
    })
    .raw({ depth: "uchar" })
    .toBuffer()
  return { pixels, width, height }
}

const reasonOf = ({ message }: Error): string => {
  if (message.includes("exceeds pixel limit"))
    return `has more than ${maxPixels.toLocaleString("en")} pixels`
  return message.includes("timeout")
    ? "takes too long to decode"
    : "is damaged, or not a PNG, JPEG, WebP or GIF"
}

/** Gives `read` an image, once its header is fine: the first frame, and its size as it is shown. */
export const whenImage = async <A>(
  file: Uint8Array,
  read: (bytes: Uint8Array, size: Size) => Promise<A>,
): Promise<A | Refused> => {
  try {
    const whole = Buffer.from(file.buffer, file.byteOffset, file.byteLength)
    const bytes = isWebp(whole) ? firstFrameOf(whole) : whole
    const header = await open(bytes).metadata()
    const refused = wrongHeader(header, bytes)
    if (refused !== undefined) return { refused }
    return await read(bytes, header.autoOrient)
  } catch (cause) {
    return { refused: reasonOf(cause as Error) }
  }
}

/**
 * Decodes the first frame of a PNG, JPEG, WebP or GIF: upright, in sRGB, on white, in the size that
 * a model reads. Sizes are checked before a pixel is decoded.
 */
export const decodeImage = (
  file: Uint8Array,
  preprocessing: ImagePreprocessing,
): Promise<DecodedImage> => whenImage(file, (bytes, size) => rendered(bytes, preprocessing, size))
