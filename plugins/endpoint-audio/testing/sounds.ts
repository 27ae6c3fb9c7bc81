export interface WavOptions {
  readonly seconds?: number
  readonly rate?: number
  readonly channels?: number
  /** 1: integers, 3: floats. */
  readonly kind?: number
  readonly bits?: number
  /** What the header says of the samples' bytes; their number if absent. */
  readonly said?: number
  /** Chunks between the format and the samples. */
  readonly between?: Uint8Array
}

/** A WAV file of silence. */
export const wav = (options: WavOptions = {}): Buffer => {
  const { seconds = 1, rate = 16_000, channels = 1, kind = 1, bits = 16 } = options
  const { between = new Uint8Array() } = options
  const frame = (channels * bits) / 8
  const data = Buffer.alloc(Math.round(seconds * rate) * frame)
  const head = Buffer.alloc(36)
  head.write("RIFF", 0, "latin1")
  head.writeUInt32LE(36 + between.length + data.length, 4)
  head.write("WAVEfmt ", 8, "latin1")
  head.writeUInt32LE(16, 16)
  head.writeUInt16LE(kind, 20)
  head.writeUInt16LE(channels, 22)
  head.writeUInt32LE(rate, 24)
  head.writeUInt32LE(rate * frame, 28)
  head.writeUInt16LE(frame, 32)
  head.writeUInt16LE(bits, 34)
  const own = Buffer.alloc(8)
  own.write("data", 0, "latin1")
  own.writeUInt32LE(options.said ?? data.length, 4)
  return Buffer.concat([head, between, own, data])
}

/** MPEG-1 layer 3, 128 kbit/s, 44,100 Hz: 417 bytes and 1152 samples a frame. */
export const mp3Frame = (): Buffer => {
  const frame = Buffer.alloc(417)
  frame.set([0xff, 0xfb, 0x90, 0x00])
  return frame
}

/** MPEG-2 layer 3, 8 kbit/s, 16,000 Hz: 36 bytes and 576 samples a frame. */
export const slowMp3Frame = (): Buffer => {
  const frame = Buffer.alloc(36)
  frame.set([0xff, 0xf3, 0x18, 0xc0])
  return frame
}

export const mp3 = (frames: number, frame = mp3Frame()): Buffer =>
  Buffer.concat(Array.from({ length: frames }, () => frame))

/** A tag of ID3v2 with so many bytes inside. */
export const id3 = (bytes: number): Buffer => {
  const tag = Buffer.alloc(10 + bytes)
  tag.write("ID3", 0, "latin1")
  tag.set([4, 0, 0, 0, 0, (bytes >> 7) & 127, bytes & 127], 3)
  return tag
}
