import { MPEGDecoder } from "mpg123-decoder"
import { resampled } from "./resample.ts"
import { type Sound, wavSound } from "./wav-samples.ts"

export interface DecodeAudioInput {
  readonly audio: Uint8Array
  readonly format: "wav" | "mp3"
  /** Samples a second that are wanted. */
  readonly rate: number
  readonly maxSeconds: number
}

/** Mono samples, or what is wrong with the file. */
export type DecodedAudio = { readonly samples: Float32Array } | { readonly refused: string }

/** Bytes that are decoded at once, so that a long file is known before it takes its memory. */
const pieceBytes = 65_536

const mixed = (channels: readonly Float32Array[], count: number): Float32Array => {
  const samples = new Float32Array(count)
  for (const channel of channels)
    for (let i = 0; i < count; i++) samples[i]! += channel[i]! / channels.length
  return samples
}

/** Stops behind `maxSeconds`. */
const mp3Sound = async (file: Uint8Array, maxSeconds: number): Promise<Sound | undefined> => {
  const decoder = new MPEGDecoder()
  await decoder.ready
  const pieces: Float32Array[] = []
  let [count, rate] = [0, 0]
  const most = () => (maxSeconds + 1) * rate
  try {
    for (let at = 0; at < file.length && count <= most(); at += pieceBytes) {
      const made = decoder.decode(file.subarray(at, at + pieceBytes))
      if (made.samplesDecoded === 0) continue
      pieces.push(mixed(made.channelData, made.samplesDecoded))
      count += made.samplesDecoded
      rate = made.sampleRate
    }
  } finally {
    decoder.free()
  }
  if (count === 0) return undefined
  const samples = new Float32Array(count)
  let at = 0
  for (const piece of pieces) {
    samples.set(piece, at)
    at += piece.length
  }
  return { samples, rate }
}

/** Runs in the thread pool. */
export default async (input: DecodeAudioInput): Promise<DecodedAudio> => {
  const { audio, format, rate, maxSeconds } = input
  const sound = format === "wav" ? wavSound(audio) : await mp3Sound(audio, maxSeconds)
  if (!sound || sound.samples.length === 0) return { refused: "has no samples that can be read" }
  if (sound.samples.length > (maxSeconds + 1) * sound.rate)
    return { refused: `has more than ${maxSeconds} s of sound` }
  return { samples: resampled(sound.samples, sound.rate, rate) }
}
