import type { Sound } from "./mp3-length.ts"

/** Formats of samples: integers, floats, and those of the extensible header, which are either. */
const kinds = new Map([
  [1, [8, 16, 24, 32]],
  [3, [32, 64]],
  [0xfffe, [8, 16, 24, 32, 64]],
])
const rates = { least: 4_000, most: 384_000 }
const mostChannels = 8
/** A file of nothing but empty chunks would hold up other requests. */
const mostChunks = 1_000
/** What programs write that don't know the length yet. */
const untilTheEnd = new Set([0, 0xffff_ffff, 0x7fff_ffff])

interface Format {
  readonly rate: number
  readonly bytesOfFrame: number
}

const formatOf = (chunk: DataView): Format | string => {
  if (chunk.byteLength < 16) return "its format is cut off"
  const [kind, channels] = [chunk.getUint16(0, true), chunk.getUint16(2, true)]
  const [rate, bits] = [chunk.getUint32(4, true), chunk.getUint16(14, true)]
  if (!kinds.get(kind)?.includes(bits))
    return "its samples are compressed or of an unusual size; send PCM of 8 to 32 bits, or floats"
  if (channels < 1 || channels > mostChannels) return `must have 1 to ${mostChannels} channels`
  if (rate < rates.least || rate > rates.most)
    return `must have ${rates.least} to ${rates.most} samples a second, not ${rate}`
  return { rate, bytesOfFrame: (channels * bits) / 8 }
}

/** The file without what is behind its samples: decoders may find more of them there. */
const upTo = (file: Uint8Array, end: number): Uint8Array => {
  if (end >= file.length) return file
  const cut = Buffer.from(file.subarray(0, end))
  cut.writeUInt32LE(end - 8, 4)
  return cut
}

/**
 * Returns a RIFF/WAVE file up to the end of its samples, with their seconds by its header, or what is
 * wrong with it.
 */
export const wavSound = (file: Uint8Array): Sound | string => {
  const view = new DataView(file.buffer, file.byteOffset, file.byteLength)
  let format: Format | undefined
  let chunks = 0
  for (let at = 12; at + 8 <= file.length; ) {
    if (++chunks > mostChunks) return `has more than ${mostChunks} chunks before its samples`
    const name = Buffer.from(file.subarray(at, at + 4)).toString("latin1")
    const said = view.getUint32(at + 4, true)
    const left = file.length - at - 8
    if (name === "data") {
      if (!format) return "its samples come before their format"
      const isOpen = untilTheEnd.has(said)
      if (!isOpen && said > left) return "is cut off: samples are missing at its end"
      const bytes = isOpen ? left : said
      const seconds = Math.floor(bytes / format.bytesOfFrame) / format.rate
      return { audio: upTo(file, at + 8 + bytes), seconds }
    }
    if (said > left) return "is cut off"
    if (name === "fmt ") {
      const read = formatOf(new DataView(file.buffer, file.byteOffset + at + 8, said))
      if (typeof read === "string") return read
      format = read
    }
    // chunks begin at even places
    at += 8 + said + (said % 2)
  }
  return "is cut off: it has no samples"
}
