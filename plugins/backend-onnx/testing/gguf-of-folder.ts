import { readFileSync } from "node:fs"
import { join } from "node:path"
import type { Architecture, DecoderConfig } from "../architectures/decoder-config.ts"
import { openSafetensorsFolder } from "../weights/safetensors-folder.ts"
import type { TensorSource } from "../weights/tensor-file.ts"
import type { GgufTensor, GgufValue } from "./gguf-writer.ts"

interface TokenizerJson {
  readonly added_tokens: readonly {
    readonly id: number
    readonly content: string
    readonly special: boolean
  }[]
  readonly model: {
    readonly vocab: Readonly<Record<string, number>>
    readonly merges: readonly (readonly [string, string])[]
  }
}

/** A folder's tokens with their types as llama.cpp numbers them, and the merges. */
const vocabularyOf = (folder: string, isByte: (token: string) => boolean = () => false) => {
  const { added_tokens: added, model } = JSON.parse(
    readFileSync(join(folder, "tokenizer.json"), "utf8"),
  ) as TokenizerJson
  const tokens: string[] = []
  for (const [token, id] of Object.entries(model.vocab)) tokens[id] = token
  for (const { id, content } of added) tokens[id] = content
  const types = tokens.map((token): number => (isByte(token) ? 6 : 1))
  for (const { id, special } of added) types[id] = special ? 3 : 4
  return { tokens, types, merges: model.merges }
}

/** The metadata that llama.cpp's converter would write for a folder's byte-level tokenizer. */
export const byteLevelMetadata = (
  folder: string,
  pre: string,
): Readonly<Record<string, GgufValue>> => {
  const { tokens, types, merges } = vocabularyOf(folder)
  return {
    "tokenizer.ggml.model": "gpt2",
    "tokenizer.ggml.pre": pre,
    "tokenizer.ggml.tokens": tokens,
    "tokenizer.ggml.token_type": types,
    "tokenizer.ggml.merges": merges.map((pair) => pair.join(" ")),
  }
}

export interface SentencePieceFixture {
  readonly tokens: readonly string[]
  readonly scores: readonly number[]
  readonly types: readonly number[]
  readonly texts: readonly { readonly text: string; readonly ids: readonly number[] }[]
}

export const sentencePieceMetadata = ({
  tokens,
  scores,
  types,
}: SentencePieceFixture): Readonly<Record<string, GgufValue>> => ({
  "tokenizer.ggml.model": "llama",
  "tokenizer.ggml.tokens": tokens,
  "tokenizer.ggml.scores": scores.map((f32) => ({ f32 })),
  "tokenizer.ggml.token_type": types,
  "tokenizer.ggml.bos_token_id": 1,
  "tokenizer.ggml.eos_token_id": 2,
})

const tensorNames: Readonly<Record<string, string>> = {
  "model.embed_tokens": "token_embd",
  "model.norm": "output_norm",
  lm_head: "output",
  input_layernorm: "attn_norm",
  post_attention_layernorm: "ffn_norm",
  "self_attn.q_proj": "attn_q",
  "self_attn.k_proj": "attn_k",
  "self_attn.v_proj": "attn_v",
  "self_attn.o_proj": "attn_output",
  "self_attn.q_norm": "attn_q_norm",
  "self_attn.k_norm": "attn_k_norm",
  "mlp.gate_proj": "ffn_gate",
  "mlp.up_proj": "ffn_up",
  "mlp.down_proj": "ffn_down",
  "mlp.gate": "ffn_gate_inp",
  "mlp.experts.gate_proj": "ffn_gate_exps",
  "mlp.experts.up_proj": "ffn_up_exps",
  "mlp.experts.down_proj": "ffn_down_exps",
}

const gemmaNames: Readonly<Record<string, string>> = {
  ...tensorNames,
  post_attention_layernorm: "post_attention_norm",
  pre_feedforward_layernorm: "ffn_norm",
  post_feedforward_layernorm: "post_ffw_norm",
}

export const phiNames: Readonly<Record<string, string>> = {
  ...tensorNames,
  "self_attn.qkv_proj": "attn_qkv",
  "mlp.gate_up_proj": "ffn_up",
}

const namesOf: Readonly<Partial<Record<Architecture, Readonly<Record<string, string>>>>> = {
  gemma3: gemmaNames,
  phi3: phiNames,
}

export const ggufName = (name: string, architecture: Architecture): string => {
  const [, layer, stem, kind] = /^(?:model\.layers\.(\d+)\.)?(.+)\.(weight|bias)$/.exec(name)!
  const names = namesOf[architecture] ?? tensorNames
  return `${layer === undefined ? "" : `blk.${layer}.`}${names[stem!]}.${kind}`
}

/** Reorders rows to llama.cpp's layout: the pair (i, i+H/2) becomes adjacent. */
export const neighbours = (
  values: Float32Array,
  columns: number,
  headSize: number,
): Float32Array => {
  const out = new Float32Array(values.length)
  for (let row = 0; row < values.length / columns; row++) {
    const within = row % headSize
    const source = row - within + (within % 2) * (headSize / 2) + (within >> 1)
    out.set(values.subarray(source * columns, (source + 1) * columns), row * columns)
  }
  return out
}

export const valuesOf = (source: TensorSource, name: string): Float32Array => {
  const entry = source.tensor(name)
  const values = new Float32Array(entry.rows * entry.columns)
  entry.type.decode(source.rows(entry, 0, entry.rows), values)
  return values
}

/**
 * Tensors of a folder as llama.cpp's converter would lay them out: matrices encoded by `encode`,
 * the rest as floats. `plainName`: the name of a tensor in a folder of a decoder alone; undefined: it
 * is left out.
 */
export const ggufTensors = (
  folder: string,
  config: DecoderConfig,
  encode: (
    values: Float32Array,
    name: string,
  ) => { readonly type: number; readonly bytes: Uint8Array },
  plainName: (name: string) => string | undefined = (name) => name,
): readonly GgufTensor[] => {
  const source = openSafetensorsFolder(folder)
  const arranged = ["llama", "mistral", "smollm3"].includes(config.architecture)
  // the matrices of all experts are one tensor
  const own = (name: string, expert: number) => name.replace(/\.experts\.\d+/, `.experts.${expert}`)
  const names = [...source.names()].filter(
    (name) => !/\.experts\.[1-9]/.test(name) && plainName(name) !== undefined,
  )
  const tensors = names.map((stored): GgufTensor => {
    const name = plainName(stored)!
    const { rows, columns } = source.tensor(stored)
    const experts = name.includes(".experts.") ? config.experts!.count : 1
    const isMatrix = rows > 1
    const shuffled = arranged && /\.[qk]_proj\./.test(name)
    const all = Float32Array.from(
      Array.from({ length: experts }, (_, expert) => [
        ...valuesOf(source, own(stored, expert)),
      ]).flat(),
    )
    if (config.architecture === "gemma3" && name.endsWith("norm.weight"))
      for (let i = 0; i < all.length; i++) all[i]! += 1
    const values = shuffled ? neighbours(all, isMatrix ? columns : 1, config.headSize) : all
    return {
      name: ggufName(name.replace(".experts.0", ".experts"), config.architecture),
      dimensions: isMatrix ? [columns, rows, ...(experts > 1 ? [experts] : [])] : [columns],
      ...(isMatrix
        ? encode(values, ggufName(name, config.architecture))
        : { type: 0, bytes: new Uint8Array(values.buffer) }),
    }
  })
  source.close()
  return tensors
}

/** The architecture's metadata. Scaled rotations are stored as a tensor of factors. */
export const architectureMetadata = (
  config: DecoderConfig,
  ropeBase: number,
): Readonly<Record<string, GgufValue>> => {
  const name = config.architecture === "mistral" ? "llama" : config.architecture
  const window = config.windows.find((one) => one !== undefined)
  return {
    "general.architecture": name,
    [`${name}.block_count`]: config.layers,
    [`${name}.context_length`]: config.contextTokens,
    [`${name}.embedding_length`]: config.width,
    [`${name}.feed_forward_length`]: config.feedForward,
    [`${name}.attention.head_count`]: config.heads,
    [`${name}.attention.head_count_kv`]: config.kvHeads,
    [`${name}.attention.key_length`]: config.headSize,
    [`${name}.attention.layer_norm_rms_epsilon`]: { f32: config.normEpsilon },
    [`${name}.rope.freq_base`]: { f32: ropeBase },
    [`${name}.rope.dimension_count`]: 2 * config.rotary[0]!.rotations.length,
    ...(config.experts && {
      [`${name}.expert_count`]: config.experts.count,
      [`${name}.expert_used_count`]: config.experts.used,
      [`${name}.expert_feed_forward_length`]: config.experts.feedForward,
    }),
    ...(config.longAfter && {
      [`${name}.rope.scaling.original_context_length`]: config.longAfter,
      [`${name}.rope.scaling.attn_factor`]: { f32: config.rotary[0]!.magnitude! },
    }),
    ...(window ? { [`${name}.attention.sliding_window`]: window } : {}),
  }
}

const pieceMetadata = (folder: string): Readonly<Record<string, GgufValue>> => {
  const { tokens, types, merges } = vocabularyOf(folder, (token) => /^<0x..>$/.test(token))
  const ranks = new Map(merges.map((pair, rank) => [pair.join(""), rank]))
  return {
    "tokenizer.ggml.model": "llama",
    "tokenizer.ggml.pre": "default",
    "tokenizer.ggml.tokens": tokens.map((token, id) =>
      types[id] === 4 ? token.replaceAll("▁", " ") : token,
    ),
    "tokenizer.ggml.scores": tokens.map((token) => ({ f32: -(ranks.get(token) ?? 1000) })),
    "tokenizer.ggml.token_type": types,
  }
}

/** A folder's SentencePiece vocabulary, as the converter writes that of Gemma. */
export const gemmaMetadata = (folder: string): Readonly<Record<string, GgufValue>> => ({
  ...pieceMetadata(folder),
  "tokenizer.ggml.bos_token_id": 2,
  "tokenizer.ggml.eos_token_id": 1,
  "tokenizer.ggml.unknown_token_id": 3,
  "tokenizer.ggml.add_space_prefix": false,
})

/** And that of Phi-3, which is known by its name. */
export const phiMetadata = (folder: string): Readonly<Record<string, GgufValue>> => ({
  ...pieceMetadata(folder),
  "general.name": "Phi 3 Mini 4k Instruct",
  "tokenizer.ggml.bos_token_id": 1,
  "tokenizer.ggml.eos_token_id": 2,
  "tokenizer.ggml.unknown_token_id": 0,
})

const factorsTensor = (
  name: string,
  rotations: readonly number[],
  ropeBase: number,
): GgufTensor => {
  const factors = Float32Array.from(
    rotations,
    (rotation, i) => ropeBase ** (-i / rotations.length) / rotation,
  )
  return {
    name: `${name}.weight`,
    dimensions: [factors.length],
    type: 0,
    bytes: new Uint8Array(factors.buffer),
  }
}

/** Factors by which rotary scaling slows the rotations down. */
export const rotaryFactors = (config: DecoderConfig, ropeBase: number): GgufTensor =>
  factorsTensor("rope_freqs", config.rotary[0]!.rotations, ropeBase)

/** The same of LongRoPE. */
export const longRotaryFactors = (
  config: DecoderConfig,
  ropeBase: number,
): readonly GgufTensor[] => {
  const { rotations, longRotations } = config.rotary[0]!
  return [
    factorsTensor("rope_factors_short", rotations, ropeBase),
    factorsTensor("rope_factors_long", longRotations!, ropeBase),
  ]
}
