import sharp from "sharp"

/** Red, green and blue, 8 bits each, row by row, and the size that the file gets. */
export interface EncodePngInput {
  readonly data: Uint8Array
  readonly width: number
  readonly height: number
  /** `cover` fills it and cuts off what lies beyond; `inside` keeps the whole picture, smaller. */
  readonly into: {
    readonly width: number
    readonly height: number
    readonly fit: "cover" | "inside"
  }
}

/** Makes a PNG file. Runs in the thread pool. */
export default async ({ data, width, height, into }: EncodePngInput): Promise<Uint8Array> => {
  const raw = sharp(data, { raw: { width, height, channels: 3 } })
  const isSame = into.width === width && into.height === height
  const sized = isSame
    ? raw
    : raw.resize({ ...into, kernel: "lanczos3", withoutEnlargement: into.fit === "inside" })
  return sized.png({ compressionLevel: 6 }).toBuffer()
}
