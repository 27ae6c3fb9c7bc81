import sharp from "sharp"

export interface ReadPng {
  readonly width: number
  readonly height: number
  readonly parameters: Record<string, unknown> | undefined
}

/** Reads a PNG file by libvips: all of its pixels, and its text chunks. */
export const readPng = async (base64: string | undefined): Promise<ReadPng> => {
  const bytes = Buffer.from(base64 ?? "", "base64")
  const { width, height, format, comments } = await sharp(bytes).metadata()
  if (format !== "png") throw new Error(`the picture is ${format}`)
  await sharp(bytes, { failOn: "warning" }).raw().toBuffer()
  const text = comments?.find(({ keyword }) => keyword.endsWith("parameters"))?.text
  return { width, height, parameters: text === undefined ? undefined : JSON.parse(text) }
}
