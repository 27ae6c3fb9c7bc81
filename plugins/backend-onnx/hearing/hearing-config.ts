import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { objectAt } from "../architectures/folder-json.ts"
import { type Activation, activationNamed } from "../encoding/encoder-parts.ts"
import {
  countIn,
  countOr,
  type Metadata,
  numberIn,
  textIn,
  textOr,
} from "../weights/gguf-metadata.ts"
import { Damaged, explaining, Unsupported } from "../weights/model-file-error.ts"

/** Sizes of encoder and decoder of a Whisper model (Radford et al., arXiv 2212.04356). */
export interface HearingConfig {
  readonly width: number
  readonly encoder: Stack
  readonly decoder: Stack
  readonly vocabulary: number
  readonly activation: Activation
  /** States of a window, each of two frames. */
  readonly states: number
  /** The most tokens of a window, its prompt included. */
  readonly contextTokens: number
  readonly spectrogram: Spectrogram
  readonly tokens: HearingTokens
}

export interface Stack {
  readonly layers: number
  readonly heads: number
  readonly feedForward: number
}

/** How sound becomes frames. */
export interface Spectrogram {
  /** Samples a second. */
  readonly rate: number
  /** Samples of a Fourier transform, and between the beginnings of two. */
  readonly window: number
  readonly hop: number
  readonly bins: number
}

/** Tokens that are no text. */
export interface HearingTokens {
  readonly start: number
  readonly end: number
  readonly languages: Readonly<Record<string, number>>
  readonly transcribe?: number
  readonly noTimestamps?: number
  /** The token of 0.00 s: those of later times follow it. */
  readonly firstTimestamp?: number
  readonly noSpeech?: number
  readonly previous?: number
  /** Never written, and not as the first token. */
  readonly suppressed: readonly number[]
  readonly suppressedFirst: readonly number[]
  /** Index of the latest time that a window may begin with. */
  readonly latestFirstTimestamp?: number
  readonly special: readonly number[]
}

const configFile = "config.json"

export const jsonIn = (folder: string, name: string): Metadata => {
  const path = join(folder, name)
  if (!existsSync(path)) return new Map()
  let json: unknown
  try {
    json = JSON.parse(readFileSync(path, "utf8"))
  } catch (cause) {
    throw new Damaged(`${name} is no JSON (${(cause as Error).message})`)
  }
  if (typeof json !== "object" || json === null || Array.isArray(json))
    throw new Damaged(`${name} is not an object`)
  return new Map(Object.entries(json)) as Metadata
}

/** Whether the folder has a Whisper model. */
export const isHearing = (folder: string): boolean =>
  existsSync(join(folder, configFile)) && jsonIn(folder, configFile).get("model_type") === "whisper"

const wholeNumbers = (json: Metadata, key: string): readonly number[] => {
  const list: unknown = json.get(key) ?? []
  if (!Array.isArray(list) || !list.every((one) => Number.isInteger(one)))
    throw new Damaged(`'${key}' is no list of tokens`)
  return list.filter((one) => one >= 0)
}

const tokenIn = (json: Metadata, key: string): number => {
  const id = numberIn(json, key)
  if (!Number.isInteger(id) || id < 0) throw new Damaged(`'${key}' is no token`)
  return id
}

export const stackOf = (json: Metadata, side: "encoder" | "decoder", width: number): Stack => {
  const heads = countIn(json, `${side}_attention_heads`, 1024)
  if (width % heads) throw new Damaged(`${heads} heads don't fit a width of ${width}`)
  const layers = countIn(json, `${side}_layers`, 512)
  return { layers, heads, feedForward: countIn(json, `${side}_ffn_dim`, 1_048_576) }
}

export const spectrogramOf = (folder: string, bins: number): Spectrogram => {
  const json = jsonIn(folder, "preprocessor_config.json")
  const window = countOr(json, "n_fft", 65_536, 400)
  const hop = countOr(json, "hop_length", 65_536, 160)
  const rate = countOr(json, "sampling_rate", 384_000, 16_000)
  if (hop > window) throw new Damaged(`a hop of ${hop} samples is more than a window of ${window}`)
  if (countOr(json, "feature_size", 1024, bins) !== bins)
    throw new Damaged("config.json and preprocessor_config.json have different numbers of bins")
  return { rate, window, hop, bins }
}

/** Ids of the added tokens of tokenizer.json, by their texts. */
const addedTokens = (folder: string): ReadonlyMap<string, { id: number; special: boolean }> => {
  const list: unknown = jsonIn(folder, "tokenizer.json").get("added_tokens") ?? []
  if (!Array.isArray(list)) throw new Damaged("'added_tokens' of tokenizer.json is no list")
  return new Map(
    (list as readonly { content: string; id: number; special: boolean }[]).map((token) => [
      token.content,
      token,
    ]),
  )
}

const languagesOf = (generation: Metadata): Readonly<Record<string, number>> => {
  const named = [...objectAt(generation, "lang_to_id")] as readonly (readonly [string, number])[]
  return Object.fromEntries(named.map(([text, id]) => [text.replace(/^<\||\|>$/g, ""), id]))
}

const tokensOf = (folder: string, config: Metadata): HearingTokens => {
  const generation = new Map([...config, ...jsonIn(folder, "generation_config.json")])
  const added = addedTokens(folder)
  const idOf = (...texts: readonly string[]) =>
    texts.map((text) => added.get(text)?.id).find((id) => id !== undefined)
  const transcribe = objectAt(generation, "task_to_id").get("transcribe")
  const noTimestamps = generation.get("no_timestamps_token_id") ?? idOf("<|notimestamps|>")
  const most = generation.get("max_initial_timestamp_index")
  const optional = {
    transcribe: typeof transcribe === "number" ? transcribe : idOf("<|transcribe|>"),
    noTimestamps: typeof noTimestamps === "number" ? noTimestamps : undefined,
    firstTimestamp: typeof noTimestamps === "number" ? noTimestamps + 1 : undefined,
    noSpeech: idOf("<|nospeech|>", "<|nocaptions|>"),
    previous: idOf("<|startofprev|>"),
    latestFirstTimestamp: typeof most === "number" ? most : undefined,
  }
  const known = Object.entries(optional).filter(([, value]) => value !== undefined)
  return {
    start: tokenIn(generation, "decoder_start_token_id"),
    end: tokenIn(generation, "eos_token_id"),
    languages: languagesOf(generation),
    suppressed: wholeNumbers(generation, "suppress_tokens"),
    suppressedFirst: wholeNumbers(generation, "begin_suppress_tokens"),
    special: [...added.values()].filter(({ special }) => special).map(({ id }) => id),
    ...Object.fromEntries(known),
  }
}

/** Reads the configuration of a folder with a Whisper model. Throws `ModelFileError`. */
export const hearingConfig = (folder: string): HearingConfig =>
  explaining(folder, () => {
    const json = jsonIn(folder, configFile)
    const type = textIn(json, "model_type")
    if (type !== "whisper")
      throw new Unsupported(`a '${type}' transcribes nothing here; this backend runs whisper`)
    if (json.get("scale_embedding") === true)
      throw new Unsupported("its embeddings are scaled, as those of no published Whisper are")
    const width = countIn(json, "d_model", 65_536)
    const states = countOr(json, "max_source_positions", 65_536, 1500)
    return {
      width,
      encoder: stackOf(json, "encoder", width),
      decoder: stackOf(json, "decoder", width),
      vocabulary: countIn(json, "vocab_size", 1_048_576),
      activation: activationNamed(textOr(json, "activation_function", "gelu")),
      states,
      contextTokens: countOr(json, "max_target_positions", 65_536, 448),
      spectrogram: spectrogramOf(folder, countOr(json, "num_mel_bins", 1024, 80)),
      tokens: tokensOf(folder, json),
    }
  })
