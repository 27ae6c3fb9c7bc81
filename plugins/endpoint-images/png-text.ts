import { crc32 } from "node:zlib"

/** Signature and IHDR, which comes first: length, type, 13 bytes, checksum. */
const headEnd = 8 + 4 + 4 + 13 + 4
const keyword = "parameters"

/** JSON in ASCII: a tEXt chunk is Latin-1. */
const asciiJson = (value: unknown): string =>
  JSON.stringify(value).replace(
    /[^\x20-\x7e]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
  )

const chunk = (type: string, data: Uint8Array): Buffer => {
  const bytes = Buffer.alloc(data.length + 12)
  bytes.writeUInt32BE(data.length, 0)
  bytes.write(type, 4, "latin1")
  bytes.set(data, 8)
  bytes.writeUInt32BE(crc32(bytes.subarray(4, -4)), bytes.length - 4)
  return bytes
}

/**
 * Returns the PNG file with a tEXt chunk `parameters` behind its header (PNG, third edition, section
 * 11.3.3.2): the same value gives the same bytes.
 */
export const withParameters = (png: Uint8Array, value: unknown): Buffer =>
  Buffer.concat([
    png.subarray(0, headEnd),
    chunk("tEXt", Buffer.from(`${keyword}\0${asciiJson(value)}`, "latin1")),
    png.subarray(headEnd),
  ])
