import { configFile, readsSounds } from "../architectures/folder-config.ts"
import { objectAt } from "../architectures/folder-json.ts"
import { activationNamed } from "../encoding/encoder-parts.ts"
import { countIn, countOr, textOr } from "../weights/gguf-metadata.ts"
import { explaining, Unsupported } from "../weights/model-file-error.ts"
import { jsonIn, spectrogramOf, stackOf } from "./hearing-config.ts"
import type { EncoderSizes } from "./hearing-graphs.ts"

/** How a chat model hears: Whisper's encoder, and what connects it to the decoder. */
export interface ListeningConfig extends EncoderSizes {
  /** The width of the decoder. */
  readonly decoderWidth: number
  /** The token that the chat template of the folder writes for a sound. */
  readonly audioToken: number
}

/** Whether the folder has a chat model that hears. */
export const isListening = (folder: string): boolean => readsSounds(jsonIn(folder, configFile))

/**
 * Reads how the chat model of a folder hears; undefined: it does not. Qwen2-Audio (Chu et al., arXiv
 * 2407.10759). Throws `ModelFileError`.
 */
export const listeningConfig = (folder: string): ListeningConfig | undefined => {
  if (!isListening(folder)) return undefined
  return explaining(folder, () => {
    const json = jsonIn(folder, configFile)
    const audio = new Map([
      ...([
        ["d_model", 1280],
        ["encoder_layers", 32],
        ["encoder_attention_heads", 20],
        ["encoder_ffn_dim", 5120],
      ] as const),
      ...objectAt(json, "audio_config"),
    ])
    const width = countIn(audio, "d_model", 65_536)
    const states = countOr(audio, "max_source_positions", 65_536, 1500)
    if (states % 2) throw new Unsupported(`its ${states} states make no pairs`)
    return {
      width,
      states,
      encoder: stackOf(audio, "encoder", width),
      activation: activationNamed(textOr(audio, "activation_function", "gelu")),
      spectrogram: spectrogramOf(folder, countOr(audio, "num_mel_bins", 1024, 128)),
      decoderWidth: countOr(objectAt(json, "text_config"), "hidden_size", 65_536, 4096),
      audioToken: countOr(json, "audio_token_index", 2 ** 24, 151_646),
    }
  })
}

/** Tokens that so many samples are for the decoder; below 1: too few. */
export const soundTokens = (samples: number, hop: number): number => {
  const states = Math.floor((Math.ceil(samples / hop) - 1) / 2) + 1
  return Math.floor((states - 2) / 2) + 1
}
