import { floats, type Session } from "../onnx/onnx-session.ts"
import type { Spectrogram } from "./hearing-config.ts"

/** Logarithms of power, `[bins, frames]`. */
export interface Frames {
  readonly values: Float32Array
  readonly count: number
}

/** Frames of a run: a minute of speech bounds the memory that it takes. */
const framesAtOnce = 3000
/** What quieter than the loudest sound by so many powers of ten is taken as. */
const range = 8

/**
 * Samples `from` to `to` of sound with silence up to `length`, which is mirrored at both ends, as a
 * Fourier transform around each end reads it.
 */
const piece = (samples: Float32Array, length: number, from: number, to: number): Float32Array =>
  Float32Array.from({ length: to - from }, (_, i) => {
    const at = Math.abs(from + i)
    return samples[at < length ? at : 2 * (length - 1) - at] ?? 0
  })

/**
 * The spectrogram of mono samples, as Whisper's feature extractor makes it: sound of fewer than
 * `least` frames is followed by silence. `pause` is called between pieces.
 */
export const framesOf = async (
  session: Session,
  { hop, window, bins }: Spectrogram,
  samples: Float32Array,
  { least, pause }: { readonly least: number; readonly pause: () => Promise<void> },
): Promise<Frames> => {
  const length = Math.max(samples.length, least * hop)
  const count = Math.floor(length / hop)
  const values = new Float32Array(bins * count)
  let loudest = Number.NEGATIVE_INFINITY
  for (let first = 0; first < count; first += framesAtOnce) {
    const size = Math.min(framesAtOnce, count - first)
    const start = first * hop - window / 2
    const part = piece(samples, length, start, start + (size - 1) * hop + window)
    const { frames } = await session.run({ samples: floats(part, [part.length]) })
    const made = frames!.data as Float32Array
    for (const value of made) loudest = Math.max(loudest, value)
    for (let bin = 0; bin < bins; bin++)
      values.set(made.subarray(bin * size, (bin + 1) * size), bin * count + first)
    await pause()
  }
  for (let i = 0; i < values.length; i++)
    values[i] = (Math.max(values[i]!, loudest - range) + 4) / 4
  return { values, count }
}

/** The frames from `first` on, `[1, bins, size]`; beyond the last one it has zeros. */
export const featuresOf = (
  { values, count }: Frames,
  { bins }: Spectrogram,
  first: number,
  size: number,
): ReturnType<typeof floats> => {
  const features = new Float32Array(bins * size)
  const there = Math.min(size, count - first)
  for (let bin = 0; bin < bins; bin++) {
    const row = values.subarray(bin * count + first, bin * count + first + there)
    features.set(row, bin * size)
  }
  return floats(features, [1, bins, size])
}
