/** What a frame has, in pixels, by the packet that it is decoded from. */
export interface CodedSize {
  readonly width: number
  readonly height: number
}

/** Reads bits, the highest of a byte first; behind the end there are zeros. */
class Bits {
  private readonly bytes: Uint8Array
  private at = 0

  constructor(bytes: Uint8Array) {
    this.bytes = bytes
  }

  read(count: number): number {
    let value = 0
    for (let i = 0; i < count; i++, this.at++)
      value = value * 2 + (((this.bytes[this.at >> 3] ?? 0) >> (7 - (this.at & 7))) & 1)
    return value
  }

  flag(): boolean {
    return this.read(1) === 1
  }

  /** An unsigned number in the code of Exp-Golomb. */
  golomb(): number {
    let zeros = 0
    while (zeros < 32 && !this.flag()) zeros++
    return 2 ** zeros - 1 + this.read(zeros)
  }
}

const at16 = (bytes: Uint8Array, at: number) => (bytes[at]! << 8) | bytes[at + 1]!

type Sizes = readonly CodedSize[]
const none: Sizes = []

/** VP8 (RFC 6386, 9.1): key frames have a size. */
const ofVp8 = (data: Uint8Array): Sizes => {
  if (data.length < 10 || (data[0]! & 1) === 1) return none
  const side = (at: number) => (data[at]! | (data[at + 1]! << 8)) & 0x3fff
  return [{ width: side(6), height: side(8) }]
}

/** The frames of a packet of VP9 (its specification, annex B). */
const framesOfVp9 = (data: Uint8Array): readonly Uint8Array[] => {
  const marker = data.at(-1) ?? 0
  const [count, bytes] = [(marker & 7) + 1, ((marker >> 3) & 3) + 1]
  const index = data.length - 2 - count * bytes
  if ((marker & 0xe0) !== 0xc0 || data[index] !== marker) return [data]
  let from = 0
  return Array.from({ length: count }, (_, frame) => {
    const place = index + 1 + frame * bytes
    let length = 0
    for (let i = bytes - 1; i >= 0; i--) length = length * 256 + data[place + i]!
    const start = from
    from += length
    return data.subarray(start, Math.min(from, index))
  })
}

const skipColours = (bits: Bits, profile: number): void => {
  if (profile >= 2) bits.read(1)
  const isRgb = bits.read(3) === 7
  if (!isRgb) bits.read(1)
  if (profile % 2 === 1) bits.read(isRgb ? 1 : 3)
}

/** One frame of VP9 (its specification, 6.2): others than key frames may have a new size, too. */
const ofVp9Frame = (frame: Uint8Array): Sizes => {
  const bits = new Bits(frame)
  bits.read(2)
  const profile = bits.read(1) + 2 * bits.read(1)
  if (profile === 3) bits.read(1)
  if (bits.flag()) return none // a frame that was decoded before
  const isKey = !bits.flag()
  const [isShown, isResilient] = [bits.flag(), bits.flag()]
  const isIntra = isKey || (!isShown && bits.flag())
  if (!isKey && !isResilient) bits.read(2)
  if (isIntra) {
    bits.read(24)
    if (isKey || profile > 0) skipColours(bits, profile)
    if (!isKey) bits.read(8)
  } else {
    bits.read(8 + 3 * 4)
    // the size of one of three earlier frames
    if (bits.flag() || bits.flag() || bits.flag()) return none
  }
  return [{ width: bits.read(16) + 1, height: bits.read(16) + 1 }]
}

/** The header of a sequence of AV1 (its specification, 5.5): no frame is larger. */
const ofAv1Sequence = (header: Uint8Array): CodedSize => {
  const bits = new Bits(header)
  bits.read(3 + 1)
  if (bits.flag()) bits.read(5)
  else {
    let delayBits = 0
    let hasModel = false
    if (bits.flag()) {
      bits.read(32 + 32)
      if (bits.flag()) bits.golomb()
      hasModel = bits.flag()
      if (hasModel) {
        delayBits = bits.read(5) + 1
        bits.read(32 + 5 + 5)
      }
    }
    const hasDelay = bits.flag()
    for (let points = bits.read(5) + 1; points > 0; points--) {
      bits.read(12)
      if (bits.read(5) > 7) bits.read(1)
      if (hasModel && bits.flag()) bits.read(2 * delayBits + 1)
      if (hasDelay && bits.flag()) bits.read(4)
    }
  }
  const [widthBits, heightBits] = [bits.read(4) + 1, bits.read(4) + 1]
  return { width: bits.read(widthBits) + 1, height: bits.read(heightBits) + 1 }
}

const ofAv1 = (data: Uint8Array): Sizes => {
  const sizes: CodedSize[] = []
  for (let at = 0; at < data.length; ) {
    const head = data[at]!
    at += (head & 4) === 0 ? 1 : 2
    let length = data.length - at
    if ((head & 2) !== 0) {
      length = 0
      for (let shift = 0; shift < 56 && at < data.length; shift += 7) {
        const byte = data[at++]!
        length += (byte & 127) * 2 ** shift
        if (byte < 128) break
      }
    }
    if (((head >> 3) & 15) === 1) sizes.push(ofAv1Sequence(data.subarray(at, at + length)))
    at += length
  }
  return sizes
}

/** The units of H.264 and HEVC, divided by their lengths, and by start codes, which decoders take as well. */
function* unitsIn(data: Uint8Array, lengthBytes: number): Generator<Uint8Array> {
  for (let at = 0; at + lengthBytes < data.length; ) {
    let length = 0
    for (let i = 0; i < lengthBytes; i++) length = length * 256 + data[at + i]!
    at += lengthBytes
    yield data.subarray(at, at + length)
    at += length
  }
  const bytes = Buffer.from(data.buffer, data.byteOffset, data.length)
  const code = Buffer.from([0, 0, 1])
  for (let at = bytes.indexOf(code); at >= 0; ) {
    const next = bytes.indexOf(code, at + 3)
    yield data.subarray(at + 3, next < 0 ? data.length : next)
    at = next
  }
}

/** A set of parameters without the bytes that keep start codes out of it. */
const unescaped = (unit: Uint8Array): Uint8Array =>
  unit.filter((byte, at) => !(byte === 3 && unit[at - 1] === 0 && unit[at - 2] === 0))

const withChroma = new Set([100, 110, 122, 244, 44, 83, 86, 118, 128, 138, 139, 134, 135])

/** A list of scales, of which only the end is looked for. */
const skipScales = (bits: Bits, count: number): void => {
  let [last, next] = [8, 8]
  for (let i = 0; i < count && next !== 0; i++) {
    const code = bits.golomb()
    const change = code % 2 === 1 ? (code + 1) / 2 : -code / 2
    next = (last + change + 256) & 255
    last = next === 0 ? last : next
  }
}

/** How pictures are ordered: by one of three kinds. */
const skipOrder = (bits: Bits, kind: number): void => {
  if (kind === 0) bits.golomb()
  if (kind !== 1) return
  bits.read(1)
  bits.golomb()
  bits.golomb()
  for (let left = Math.min(bits.golomb(), 255); left > 0; left--) bits.golomb()
}

/** A sequence parameter set of H.264 (7.3.2.1.1). */
const ofAvcSet = (set: Uint8Array): CodedSize => {
  const bits = new Bits(unescaped(set).subarray(1))
  const profile = bits.read(8)
  bits.read(8 + 8)
  bits.golomb()
  if (withChroma.has(profile)) {
    const chroma = bits.golomb()
    if (chroma === 3) bits.read(1)
    bits.golomb()
    bits.golomb()
    bits.read(1)
    const lists = bits.flag() ? (chroma === 3 ? 12 : 8) : 0
    for (let list = 0; list < lists; list++) if (bits.flag()) skipScales(bits, list < 6 ? 16 : 64)
  }
  bits.golomb()
  skipOrder(bits, bits.golomb())
  bits.golomb()
  bits.read(1)
  const [columns, rows] = [bits.golomb() + 1, bits.golomb() + 1]
  const isWhole = bits.flag()
  return { width: 16 * columns, height: 16 * rows * (isWhole ? 1 : 2) }
}

/** A sequence parameter set of HEVC (7.3.2.2.1). */
const ofHevcSet = (set: Uint8Array): CodedSize => {
  const bits = new Bits(unescaped(set).subarray(2))
  bits.read(4)
  const layers = bits.read(3)
  bits.read(1 + 88 + 8)
  const own = Array.from({ length: layers === 0 ? 0 : 8 }, () => [bits.flag(), bits.flag()])
  for (const [hasProfile, hasLevel] of own.slice(0, layers))
    bits.read((hasProfile ? 88 : 0) + (hasLevel ? 8 : 0))
  bits.golomb()
  if (bits.golomb() === 3) bits.read(1)
  return { width: bits.golomb(), height: bits.golomb() }
}

/** Length of the lengths of units, and the units, of an `avcC` (ISO/IEC 14496-15, 5.3.3). */
const avcRecord = (record: Uint8Array) => {
  const units: Uint8Array[] = []
  for (let left = record[5]! & 31, at = 6; left > 0 && at + 2 < record.length; left--) {
    const end = at + 2 + at16(record, at)
    units.push(record.subarray(at + 2, end))
    at = end
  }
  return { lengthBytes: (record[4]! & 3) + 1, units }
}

/** The same of an `hvcC` (8.3.3). */
const hevcRecord = (record: Uint8Array) => {
  const units: Uint8Array[] = []
  for (let lists = record[22] ?? 0, at = 23; lists > 0 && at + 3 < record.length; lists--) {
    let left = at16(record, at + 1)
    for (at += 3; left > 0 && at + 2 < record.length; left--) {
      const end = at + 2 + at16(record, at)
      units.push(record.subarray(at + 2, end))
      at = end
    }
  }
  return { lengthBytes: (record[21]! & 3) + 1, units }
}

const records = { avc: avcRecord, hevc: hevcRecord }
const sets = {
  avc: { is: (unit: Uint8Array) => (unit[0]! & 31) === 7, sizeOf: ofAvcSet },
  hevc: { is: (unit: Uint8Array) => ((unit[0]! >> 1) & 63) === 33, sizeOf: ofHevcSet },
}

const ofUnits = (codec: "avc" | "hevc", units: Iterable<Uint8Array>): Sizes => {
  const { is, sizeOf } = sets[codec]
  return [...units].filter(is).map(sizeOf)
}

/**
 * Returns what reads the sizes of frames in the packets of a track, of which the container may say
 * anything, and those in its description; undefined for a codec that is not read here.
 */
export const codedSizes = (
  codec: string,
  description?: Uint8Array,
): { readonly first: Sizes; readonly of: (packet: Uint8Array) => Sizes } | undefined => {
  if (codec === "vp8") return { first: none, of: ofVp8 }
  if (codec === "vp9")
    return { first: none, of: (packet) => framesOfVp9(packet).flatMap(ofVp9Frame) }
  if (codec === "av1")
    return { first: description ? ofAv1(description.subarray(4)) : none, of: ofAv1 }
  if (codec !== "avc" && codec !== "hevc") return undefined
  const { lengthBytes, units } = description
    ? records[codec](description)
    : { lengthBytes: 4, units: [] }
  return {
    first: ofUnits(codec, units),
    of: (packet) => ofUnits(codec, unitsIn(packet, lengthBytes)),
  }
}
