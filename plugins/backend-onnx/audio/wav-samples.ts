/** Samples of all channels, mixed: mono. */
export interface Sound {
  /** -1 to 1. */
  readonly samples: Float32Array
  /** Samples a second. */
  readonly rate: number
}

type Read = (view: DataView, at: number) => number

/** How one sample is read, by its kind (1: integers, 3: floats) and bits. */
const readers: Readonly<Record<string, Read>> = {
  "1/8": (view, at) => (view.getUint8(at) - 128) / 2 ** 7,
  "1/16": (view, at) => view.getInt16(at, true) / 2 ** 15,
  "1/24": (view, at) => (view.getInt16(at + 1, true) * 256 + view.getUint8(at)) / 2 ** 23,
  "1/32": (view, at) => view.getInt32(at, true) / 2 ** 31,
  "3/32": (view, at) => view.getFloat32(at, true),
  "3/64": (view, at) => view.getFloat64(at, true),
}
/** A format whose own kind is in the first bytes of its sub-format. */
const extensible = 0xfffe
const subFormatAt = 24
/** Beyond these a header lies: the filter of a rate takes memory in proportion to it. */
const rates = { least: 4_000, most: 384_000 }
const mostChannels = 8

interface Format {
  readonly read: Read
  readonly channels: number
  readonly rate: number
  readonly bytesOfSample: number
}

const formatOf = (view: DataView, at: number, length: number): Format | undefined => {
  const said = view.getUint16(at, true)
  const hasSub = said === extensible && length >= subFormatAt + 2
  const kind = hasSub ? view.getUint16(at + subFormatAt, true) : said
  const bits = view.getUint16(at + 14, true)
  const read = readers[`${kind}/${bits}`]
  if (!read) return undefined
  const [channels, rate] = [view.getUint16(at + 2, true), view.getUint32(at + 4, true)]
  if (channels < 1 || channels > mostChannels) return undefined
  if (rate < rates.least || rate > rates.most) return undefined
  return { read, channels, rate, bytesOfSample: bits / 8 }
}

const mixed = (view: DataView, at: number, bytes: number, format: Format): Float32Array => {
  const { read, channels, bytesOfSample } = format
  const samples = new Float32Array(Math.floor(bytes / (channels * bytesOfSample)))
  let place = at
  for (let i = 0; i < samples.length; i++) {
    let sum = 0
    for (let channel = 0; channel < channels; channel++, place += bytesOfSample)
      sum += read(view, place)
    const mean = sum / channels
    // floats may be anything
    samples[i] = Number.isFinite(mean) ? Math.max(-1, Math.min(1, mean)) : 0
  }
  return samples
}

/** Reads a RIFF/WAVE file; undefined where it has no samples that can be read. */
export const wavSound = (file: Uint8Array): Sound | undefined => {
  const view = new DataView(file.buffer, file.byteOffset, file.byteLength)
  let format: Format | undefined
  for (let at = 12; at + 8 <= file.length; ) {
    const name = Buffer.from(file.subarray(at, at + 4)).toString("latin1")
    const length = Math.min(view.getUint32(at + 4, true), file.length - at - 8)
    if (name === "data" && format) {
      const { rate } = format
      // files that are written while they grow don't know their length
      const bytes = length === 0 ? file.length - at - 8 : length
      return { samples: mixed(view, at + 8, bytes, format), rate }
    }
    if (name === "fmt " && length >= 16) format = formatOf(view, at + 8, length)
    at += 8 + length + (length % 2)
  }
  return undefined
}
