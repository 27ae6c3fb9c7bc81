/** What the header of an image file says. */
export interface ImageHeader {
  readonly mediaType: string
  /** Absent where the header is damaged: whoever decodes it says what is wrong. */
  readonly size?: { readonly width: number; readonly height: number }
}

type Size = ImageHeader["size"]

const text = (bytes: Buffer, from: number, to: number) => bytes.toString("latin1", from, to)

const pngSize = (bytes: Buffer): Size =>
  bytes.length < 24 ? undefined : { width: bytes.readUInt32BE(16), height: bytes.readUInt32BE(20) }

const gifSize = (bytes: Buffer): Size =>
  bytes.length < 10 ? undefined : { width: bytes.readUInt16LE(6), height: bytes.readUInt16LE(8) }

/** The three kinds of first chunks (RFC 9649). */
const webpSize = (bytes: Buffer): Size => {
  if (bytes.length < 30) return undefined
  switch (text(bytes, 12, 16)) {
    case "VP8X":
      return { width: 1 + bytes.readUIntLE(24, 3), height: 1 + bytes.readUIntLE(27, 3) }
    case "VP8L": {
      const bits = bytes.readUInt32LE(21)
      return { width: 1 + (bits & 0x3fff), height: 1 + ((bits >> 14) & 0x3fff) }
    }
    case "VP8 ":
      return { width: bytes.readUInt16LE(26) & 0x3fff, height: bytes.readUInt16LE(28) & 0x3fff }
    default:
      return undefined
  }
}

// segments before the frame header; no file needs as many
const maxSegments = 1_000

/** Walks the segments up to the frame header (ITU-T T.81, B.2.2). */
const jpegSize = (bytes: Buffer): Size => {
  let at = 2
  for (let segment = 0; segment < maxSegments; segment++) {
    while (bytes[at] === 0xff && bytes[at + 1] === 0xff) at++
    if (at + 9 > bytes.length || bytes[at] !== 0xff) return undefined
    const marker = bytes[at + 1]!
    const isFrame = marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker)
    if (isFrame) return { width: bytes.readUInt16BE(at + 7), height: bytes.readUInt16BE(at + 5) }
    at += 2 + bytes.readUInt16BE(at + 2)
  }
  return undefined
}

/** The formats by their signatures, the first bytes. */
const formats: readonly {
  readonly mediaType: string
  readonly fits: (bytes: Buffer) => boolean
  readonly sizeIn: (bytes: Buffer) => Size
}[] = [
  {
    mediaType: "image/png",
    fits: (bytes) => text(bytes, 0, 8) === "\x89PNG\r\n\x1a\n",
    sizeIn: pngSize,
  },
  {
    mediaType: "image/jpeg",
    fits: (bytes) => text(bytes, 0, 3) === "\xff\xd8\xff",
    sizeIn: jpegSize,
  },
  {
    mediaType: "image/gif",
    fits: (bytes) => ["GIF87a", "GIF89a"].includes(text(bytes, 0, 6)),
    sizeIn: gifSize,
  },
  {
    mediaType: "image/webp",
    fits: (bytes) => text(bytes, 0, 4) === "RIFF" && text(bytes, 8, 12) === "WEBP",
    sizeIn: webpSize,
  },
]

/** Reads the header of a PNG, JPEG, GIF or WebP; undefined for anything else. */
export const imageHeader = (bytes: Buffer): ImageHeader | undefined => {
  const format = formats.find(({ fits }) => fits(bytes))
  if (!format) return undefined
  const size = format.sizeIn(bytes)
  return { mediaType: format.mediaType, ...(size && { size }) }
}
