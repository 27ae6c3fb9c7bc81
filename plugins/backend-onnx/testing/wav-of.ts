export interface WavOptions {
  readonly rate?: number
  readonly channels?: number
  /** 1: integers, 3: floats. */
  readonly kind?: 1 | 3
  readonly bits?: 8 | 16 | 24 | 32 | 64
  /** The kind is in the sub-format. */
  readonly isExtensible?: boolean
}

const put = (view: DataView, at: number, value: number, kind: 1 | 3, bits: number): void => {
  if (kind === 3) {
    if (bits === 64) view.setFloat64(at, value, true)
    else view.setFloat32(at, value, true)
    return
  }
  const level = Math.round(value * (2 ** (bits - 1) - 1))
  if (bits === 8) view.setUint8(at, level + 128)
  else if (bits === 16) view.setInt16(at, level, true)
  else if (bits === 32) view.setInt32(at, level, true)
  else {
    view.setUint8(at, level & 255)
    view.setInt16(at + 1, level >> 8, true)
  }
}

/** A WAV file of samples from -1 to 1, the same in all channels. */
export const wavOf = (samples: ArrayLike<number>, options: WavOptions = {}): Buffer => {
  const { rate = 16_000, channels = 1, kind = 1, bits = 16, isExtensible = false } = options
  const size = bits / 8
  const format = Buffer.alloc(isExtensible ? 40 : 16)
  format.writeUInt16LE(isExtensible ? 0xfffe : kind, 0)
  format.writeUInt16LE(channels, 2)
  format.writeUInt32LE(rate, 4)
  format.writeUInt32LE(rate * channels * size, 8)
  format.writeUInt16LE(channels * size, 12)
  format.writeUInt16LE(bits, 14)
  if (isExtensible) format.writeUInt16LE(kind, 24)
  const data = Buffer.alloc(samples.length * channels * size)
  const view = new DataView(data.buffer, data.byteOffset)
  for (let i = 0; i < samples.length; i++)
    for (let channel = 0; channel < channels; channel++)
      put(view, (i * channels + channel) * size, samples[i]!, kind, bits)
  const head = (name: string, length: number) => {
    const bytes = Buffer.alloc(8)
    bytes.write(name, 0, "latin1")
    bytes.writeUInt32LE(length, 4)
    return bytes
  }
  const body = [Buffer.from("WAVE"), head("fmt ", format.length), format]
  const all = Buffer.concat([...body, head("data", data.length), data])
  return Buffer.concat([head("RIFF", all.length), all])
}
