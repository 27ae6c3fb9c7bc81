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

const mp3Sound = async (file: Uint8Array): Promise<Sound | undefined> => {
  const decoder = new MPEGDecoder()
  await decoder.ready
  try {
    const { channelData, samplesDecoded, sampleRate } = decoder.decode(file)
    if (samplesDecoded === 0) return undefined
    const samples = new Float32Array(samplesDecoded)
    for (const channel of channelData)
      for (let i = 0; i < samples.length; i++) samples[i]! += channel[i]! / channelData.length
    return { samples, rate: sampleRate }
  } finally {
    decoder.free()
  }
}

/** Runs in the thread pool. */
export default async (input: DecodeAudioInput): Promise<DecodedAudio> => {
  const { audio, format, rate, maxSeconds } = input
  const sound = format === "wav" ? wavSound(audio) : await mp3Sound(audio)
  if (!sound || sound.samples.length === 0) return { refused: "has no samples that can be read" }
  // a header may name another rate than the frames have
  if (sound.samples.length > (maxSeconds + 1) * sound.rate)
    return { refused: "has more samples than its header says" }
  return { samples: resampled(sound.samples, sound.rate, rate) }
}
