import type { Size } from "./size.ts"

/** What a decoder of the backend takes, too: as many pixels as 8192 x 8192 has. */
const maxPixels = 2 ** 26
const maxFileSide = 65_535

/** Refused by its header: nothing of an image is decoded here, so none can take long. */
const damaged = "is damaged"

const view = (bytes: Uint8Array) => new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
const latin = (bytes: Uint8Array, from: number, to: number) =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("latin1", from, to)

interface Shape extends Size {
  /** Stored on its side, by EXIF. */
  readonly isTurned: boolean
}

const upright = (width: number, height: number): Shape => ({ width, height, isTurned: false })

/** Whether the orientation (0x0112) of a TIFF block swaps width and height (EXIF 3.0, 4.6.5). */
const swapsSides = (tiff: Uint8Array): boolean => {
  if (tiff.length < 14) return false
  const order = latin(tiff, 0, 2)
  if (order !== "II" && order !== "MM") return false
  const data = view(tiff)
  const little = order === "II"
  const at = data.getUint32(4, little)
  if (at + 2 > tiff.length) return false
  const entries = data.getUint16(at, little)
  for (let i = 0; i < entries; i++) {
    const entry = at + 2 + 12 * i
    if (entry + 12 > tiff.length) return false
    if (data.getUint16(entry, little) !== 0x0112) continue
    const orientation = data.getUint16(entry + 8, little)
    return orientation >= 5 && orientation <= 8
  }
  return false
}

const exifMark = "Exif\0\0"
const tiffOf = (block: Uint8Array): Uint8Array =>
  latin(block, 0, 6) === exifMark ? block.subarray(6) : block

/** Chunks or segments that are looked at before the size, or for EXIF; no file needs as many. */
const maxPieces = 1_000

const pngShape = (bytes: Uint8Array): Shape | undefined => {
  if (bytes.length < 33 || latin(bytes, 12, 16) !== "IHDR") return undefined
  const data = view(bytes)
  const shape = upright(data.getUint32(16), data.getUint32(20))
  let at = 33
  for (let i = 0; i < maxPieces && at + 12 <= bytes.length; i++) {
    const length = data.getUint32(at)
    if (latin(bytes, at + 4, at + 8) === "eXIf")
      return { ...shape, isTurned: swapsSides(tiffOf(bytes.subarray(at + 8, at + 8 + length))) }
    at += 12 + length
  }
  return shape
}

const gifShape = (bytes: Uint8Array): Shape | undefined => {
  if (bytes.length < 13) return undefined
  const data = view(bytes)
  return upright(data.getUint16(6, true), data.getUint16(8, true))
}

const isFrame = (marker: number) =>
  marker >= 0xc0 && marker <= 0xcf && marker !== 0xc4 && marker !== 0xc8 && marker !== 0xcc

/** Walks the segments up to the frame header (ITU-T T.81, B.2.2). */
const jpegShape = (bytes: Uint8Array): Shape | undefined => {
  const data = view(bytes)
  let at = 2
  let isTurned = false
  for (let i = 0; i < maxPieces; i++) {
    // fill bytes may stand before a marker
    let fill = 0
    while (bytes[at] === 0xff && bytes[at + 1] === 0xff && fill++ < maxPieces) at++
    if (at + 4 > bytes.length || bytes[at] !== 0xff) return undefined
    const marker = bytes[at + 1]!
    const length = data.getUint16(at + 2)
    if (length < 2) return undefined
    const segment = bytes.subarray(at + 4, at + 2 + length)
    if (isFrame(marker)) {
      if (segment.length < 5) return undefined
      const frame = view(segment)
      return { width: frame.getUint16(3), height: frame.getUint16(1), isTurned }
    }
    if (marker === 0xda || marker === 0xd9) return undefined
    if (marker === 0xe1 && latin(segment, 0, 6) === exifMark) isTurned = swapsSides(tiffOf(segment))
    at += 2 + length
  }
  return undefined
}

const uint24 = (bytes: Uint8Array, at: number) =>
  bytes[at]! + (bytes[at + 1]! << 8) + (bytes[at + 2]! << 16)

/** EXIF stands behind the picture (WebP container specification). */
const webpTurned = (bytes: Uint8Array): boolean => {
  const data = view(bytes)
  let at = 12
  for (let i = 0; i < maxPieces && at + 8 <= bytes.length; i++) {
    const length = data.getUint32(at + 4, true)
    if (latin(bytes, at, at + 4) === "EXIF")
      return swapsSides(tiffOf(bytes.subarray(at + 8, at + 8 + length)))
    at += 8 + length + (length % 2)
  }
  return false
}

const webpShape = (bytes: Uint8Array): Shape | undefined => {
  if (bytes.length < 30) return undefined
  const data = view(bytes)
  switch (latin(bytes, 12, 16)) {
    case "VP8X":
      return {
        width: uint24(bytes, 24) + 1,
        height: uint24(bytes, 27) + 1,
        isTurned: webpTurned(bytes),
      }
    case "VP8L": {
      const bits = data.getUint32(21, true)
      return upright((bits & 0x3fff) + 1, ((bits >> 14) & 0x3fff) + 1)
    }
    case "VP8 ":
      return upright(data.getUint16(26, true) & 0x3fff, data.getUint16(28, true) & 0x3fff)
    default:
      return undefined
  }
}

const startsWith = (bytes: Uint8Array, text: string, at = 0) =>
  latin(bytes, at, at + text.length) === text

/** The formats by their first bytes, and how their headers tell a size. */
const formats = [
  { fits: (bytes: Uint8Array) => startsWith(bytes, "\x89PNG\r\n\x1a\n"), shape: pngShape },
  { fits: (bytes: Uint8Array) => startsWith(bytes, "\xff\xd8\xff"), shape: jpegShape },
  {
    fits: (bytes: Uint8Array) => startsWith(bytes, "GIF87a") || startsWith(bytes, "GIF89a"),
    shape: gifShape,
  },
  {
    fits: (bytes: Uint8Array) => startsWith(bytes, "RIFF") && startsWith(bytes, "WEBP", 8),
    shape: webpShape,
  },
]

/** Returns the size of an image file as a viewer shows it, or what is wrong with its header. */
export const pictureSize = (bytes: Uint8Array): Size | string => {
  const format = formats.find(({ fits }) => fits(bytes))
  if (!format) return "is no PNG, JPEG, WebP or GIF"
  const shape = format.shape(bytes)
  if (!shape || shape.width < 1 || shape.height < 1) return damaged
  const { width, height, isTurned } = shape
  if (Math.max(width, height) > maxFileSide || width * height > maxPixels)
    return `has ${width} x ${height} pixels; ${maxPixels.toLocaleString("en")} are the most`
  return isTurned ? { width: height, height: width } : { width, height }
}
