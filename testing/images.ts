import { crc32, deflateSync } from "node:zlib"
import sharp, { type Create, type Sharp } from "sharp"

/** An image of one colour. */
export const plainImage = (width: number, height: number, background: Colour): Sharp =>
  sharp({ create: { width, height, channels: 3, background } })

type Colour = Create["background"]
type Rgb = readonly [red: number, green: number, blue: number]
export const red: Rgb = [255, 0, 0]
export const green: Rgb = [0, 255, 0]
export const blue: Rgb = [0, 0, 255]
export const black: Rgb = [0, 0, 0]

/** An image of four colours: top left, top right, bottom left, bottom right. */
export const quarters = (
  width: number,
  height: number,
  colours: readonly Rgb[] = [red, green, blue, black],
): Sharp => {
  const pixels = Array.from({ length: width * height }, (_, at) => {
    const [column, row] = [at % width, Math.floor(at / width)]
    return colours[2 * Number(row >= height / 2) + Number(column >= width / 2)]!
  })
  return sharp(Uint8Array.from(pixels.flat()), { raw: { width, height, channels: 3 } })
}

/** A JPEG whose colours stay what they were. */
export const exactJpeg = (image: Sharp): Promise<Buffer> =>
  image.jpeg({ quality: 100, chromaSubsampling: "4:4:4" }).toBuffer()

/** An animation of one frame for each colour. */
const animated = async (colours: readonly Colour[]): Promise<Sharp> =>
  sharp(await Promise.all(colours.map((colour) => plainImage(24, 16, colour).png().toBuffer())), {
    join: { animated: true },
  })

/** What an image is, and its bytes in a format that takes it; all show red. */
export const unusualImages = async (): Promise<Readonly<Record<string, Buffer>>> => {
  const image = () => plainImage(24, 16, "red")
  const opaque = { r: 255, g: 0, b: 0 }
  return {
    "animated GIF": await (await animated(["red", "green", "blue"])).gif({ delay: 50 }).toBuffer(),
    "animated WebP": await (await animated(["red", "green", "blue"]))
      .webp({ lossless: true, delay: 50 })
      .toBuffer(),
    "WebP of 100,000 frames": await longWebp(100_000),
    "CMYK JPEG": await image().toColourspace("cmyk").jpeg({ quality: 100 }).toBuffer(),
    "16-bit PNG": await image().toColourspace("rgb16").png().toBuffer(),
    "palette PNG": await image().png({ palette: true }).toBuffer(),
    "opaque PNG with alpha": await sharp({
      create: { width: 24, height: 16, channels: 4, background: { ...opaque, alpha: 1 } },
    })
      .png()
      .toBuffer(),
    "progressive JPEG": await image().jpeg({ progressive: true, quality: 100 }).toBuffer(),
    "interlaced PNG": await image().png({ progressive: true }).toBuffer(),
    "1 x 1": await plainImage(1, 1, "red").png().toBuffer(),
    "65,535 x 1": await plainImage(65_535, 1, "red").png().toBuffer(),
    "1 x 65,500": await exactJpeg(plainImage(1, 65_500, "red")),
    "JPEG with bytes behind its end": Buffer.concat([
      await exactJpeg(image()),
      Buffer.alloc(99, "x"),
    ]),
  }
}

const chunk = (type: string, data: Uint8Array): Buffer => {
  const typed = Buffer.concat([Buffer.from(type, "latin1"), data])
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)]
  length.writeUInt32BE(data.length)
  sum.writeUInt32BE(crc32(typed))
  return Buffer.concat([length, typed, sum])
}

/** A PNG that says it has this size; without `rows`, all of it is there, and black. */
export const writtenPng = (width: number, height: number, rows?: Uint8Array): Buffer => {
  const header = Buffer.alloc(13)
  header.writeUInt32BE(width, 0)
  header.writeUInt32BE(height, 4)
  header[8] = 1 // bit a pixel, greyscale
  const all = () => Buffer.alloc((1 + Math.ceil(width / 8)) * height)
  return Buffer.concat([
    Buffer.from("\x89PNG\r\n\x1a\n", "latin1"),
    chunk("IHDR", header),
    chunk("IDAT", deflateSync(rows ?? all())),
    chunk("IEND", new Uint8Array()),
  ])
}

const webpChunk = (type: string, data: Uint8Array): Buffer => {
  const length = Buffer.alloc(4)
  length.writeUInt32LE(data.length)
  return Buffer.concat([Buffer.from(type, "latin1"), length, data, Buffer.alloc(data.length % 2)])
}

/** An animation of a red pixel in so many frames; a frame has 60 bytes. */
export const longWebp = async (frames: number): Promise<Buffer> => {
  const red = await plainImage(1, 1, "red").webp({ lossless: true }).toBuffer()
  // place, size less 1 and duration, all 0
  const frame = webpChunk("ANMF", Buffer.concat([Buffer.alloc(16), red.subarray(12)]))
  const body = Buffer.concat([
    Buffer.from("WEBP", "latin1"),
    webpChunk("VP8X", Buffer.from([2, 0, 0, 0, 0, 0, 0, 0, 0, 0])),
    webpChunk("ANIM", Buffer.alloc(6)),
    ...Array<Buffer>(frames).fill(frame),
  ])
  return webpChunk("RIFF", body)
}

const segment = (marker: number, bytes: readonly number[]): Buffer =>
  Buffer.from([0xff, marker, (bytes.length + 2) >> 8, (bytes.length + 2) & 255, ...bytes])

/**
 * A grey JPEG of 8192 x 8192 that refines one coefficient after the other: 120 bytes a scan, and
 * each goes over a million blocks.
 */
export const manyScans = (scans: number): Buffer => {
  const side = [0x20, 0x00]
  const blocks = 2 ** 20
  // one code of one bit: for a difference of 0, and for the end of the band in 2^14 blocks
  const codes = (table: number, symbol: number) =>
    segment(0xc4, [table, 1, ...Array<number>(15).fill(0), symbol])
  const scan = (at: number, bits: number, data: Buffer) =>
    Buffer.concat([segment(0xda, [1, 1, 0, at, at, bits]), data])
  const refined = Array.from({ length: scans - 1 }, (_, i) => {
    const low = 13 - (i % 14)
    const high = low === 13 ? 0 : low + 1
    return scan(1 + Math.floor(i / 14), (high << 4) | low, Buffer.alloc((15 * blocks) / 2 ** 17))
  })
  return Buffer.concat([
    Buffer.from([0xff, 0xd8]),
    segment(0xdb, [0, ...Array<number>(64).fill(1)]),
    segment(0xc2, [8, ...side, ...side, 1, 1, 0x11, 0]),
    codes(0, 0),
    codes(0x10, 0xe0),
    scan(0, 0, Buffer.alloc(blocks / 8)),
    ...refined,
    Buffer.from([0xff, 0xd9]),
  ])
}

const cut = (bytes: Buffer, part: number): Buffer =>
  bytes.subarray(0, Math.floor(bytes.length * part))

/** What is wrong with an image, and its bytes; each begins as a PNG, JPEG, WebP or GIF does. */
export const brokenImages = async (): Promise<Readonly<Record<string, Buffer>>> => {
  const noise = () => {
    const pixels = Uint8Array.from({ length: 60 * 40 * 3 }, (_, i) => Math.imul(i, 0x9e3779b1) >> 9)
    return sharp(pixels, { raw: { width: 60, height: 40, channels: 3 } })
  }
  const [png, jpeg, webp, gif] = await Promise.all([
    noise().png().toBuffer(),
    noise().jpeg().toBuffer(),
    noise().webp().toBuffer(),
    noise().gif().toBuffer(),
  ])
  const turned = Buffer.from(png).fill(0x5a, png.length >> 1, (png.length >> 1) + 16)
  const huge = Buffer.from("GIF89a\xff\xff\xff\xff\xf0\0\0", "latin1")
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>`
  return {
    "only a PNG's signature": png.subarray(0, 8),
    "only a JPEG's signature": jpeg.subarray(0, 3),
    "a PNG cut off": cut(png, 0.5),
    "a JPEG cut off": cut(jpeg, 0.9),
    "a WebP cut off": cut(webp, 0.9),
    "a GIF cut off": cut(gif, 0.5),
    "a PNG with bytes turned": turned,
    "a PNG of no width": writtenPng(0, 9),
    "a PNG of no height": writtenPng(9, 0),
    "a PNG with rows missing": writtenPng(4_000, 4_000, Buffer.alloc(9)),
    "a PNG of 900 million pixels": writtenPng(30_000, 30_000, Buffer.alloc(9)),
    "a PNG of 2^62 pixels": writtenPng(2 ** 31 - 1, 2 ** 31 - 1, Buffer.alloc(9)),
    "a PNG of 67 million pixels, all there": writtenPng(8_193, 8_192),
    "a PNG of 100,000 x 1": writtenPng(100_000, 1),
    "a JPEG of 800 scans over 67 million pixels": manyScans(800),
    "a GIF of 4 billion pixels": Buffer.concat([huge, gif.subarray(13)]),
    "an SVG behind a PNG's signature": Buffer.concat([png.subarray(0, 8), Buffer.from(svg)]),
    "a WebP's signature before text": Buffer.from("RIFF\x20\0\0\0WEBPVP8 hello, this is no image"),
  }
}
