import type { TensorSource } from "../weights/tensor-file.ts"
import type { Architecture } from "./decoder-config.ts"

/** Matrices of a layer, which may have biases. */
export type LayerMatrix = "q" | "k" | "v" | "out" | "gate" | "up" | "down"
export type ExpertMatrix = Extract<LayerMatrix, "gate" | "up" | "down">
export type LayerNorm =
  | "beforeAttention"
  | "afterAttention"
  | "beforeFeedForward"
  | "afterFeedForward"
  | "queries"
  | "keys"

/** Tensor names of a file format, without `.weight` and `.bias`. */
export interface TensorNames {
  readonly embedding: string
  readonly finalNorm: string
  readonly head: string
  layer(index: number): string
  /** Matrices of one name are the rows of one tensor, one after the other. */
  readonly parts: Readonly<Record<LayerMatrix | LayerNorm, string>>
  readonly router: string
  /**
   * The matrices of an expert, with all of the name; with `#` for its number, otherwise all experts'
   * are in one tensor, one after the other. Matrices of one name are one below the other.
   */
  readonly expert: Readonly<Record<ExpertMatrix, string>>
  /** Tensors that may be present and are not used. */
  readonly ignored: RegExp
  /** What is added to the weights of norms as they are stored. */
  readonly normShift: number
}

const gguf: TensorNames = {
  embedding: "token_embd",
  finalNorm: "output_norm",
  head: "output",
  layer: (index) => `blk.${index}.`,
  parts: {
    q: "attn_q",
    k: "attn_k",
    v: "attn_v",
    out: "attn_output",
    gate: "ffn_gate",
    up: "ffn_up",
    down: "ffn_down",
    beforeAttention: "attn_norm",
    afterAttention: "post_attention_norm",
    beforeFeedForward: "ffn_norm",
    afterFeedForward: "post_ffw_norm",
    queries: "attn_q_norm",
    keys: "attn_k_norm",
  },
  router: "ffn_gate_inp",
  expert: {
    gate: "ffn_gate_exps.weight",
    up: "ffn_up_exps.weight",
    down: "ffn_down_exps.weight",
  },
  ignored: /^rope_(freqs|factors_long|factors_short)\.weight$/,
  normShift: 0,
}

const folder: TensorNames = {
  embedding: "model.embed_tokens",
  finalNorm: "model.norm",
  head: "lm_head",
  layer: (index) => `model.layers.${index}.`,
  parts: {
    q: "self_attn.q_proj",
    k: "self_attn.k_proj",
    v: "self_attn.v_proj",
    out: "self_attn.o_proj",
    gate: "mlp.gate_proj",
    up: "mlp.up_proj",
    down: "mlp.down_proj",
    beforeAttention: "input_layernorm",
    // only Gemma has these
    afterAttention: "",
    beforeFeedForward: "post_attention_layernorm",
    afterFeedForward: "",
    queries: "self_attn.q_norm",
    keys: "self_attn.k_norm",
  },
  router: "mlp.gate",
  expert: {
    gate: "mlp.experts.#.gate_proj.weight",
    up: "mlp.experts.#.up_proj.weight",
    down: "mlp.experts.#.down_proj.weight",
  },
  // a table of old files, a head that repeats the embedding, and the tower of Qwen-VL
  ignored: /\.rotary_emb\.inv_freq$|^lm_head\.weight$|^visual\./,
  normShift: 0,
}

/** Gemma 3 stores the weights of norms less one, and calls the norms differently. */
const gemma3: TensorNames = {
  ...folder,
  parts: {
    ...folder.parts,
    afterAttention: "post_attention_layernorm",
    beforeFeedForward: "pre_feedforward_layernorm",
    afterFeedForward: "post_feedforward_layernorm",
  },
  normShift: 1,
}

const phi3Gguf: TensorNames = {
  ...gguf,
  parts: { ...gguf.parts, q: "attn_qkv", k: "attn_qkv", v: "attn_qkv", gate: "ffn_up" },
}

const fused = { qkv: "self_attn.qkv_proj", gateUp: "mlp.gate_up_proj" }
const phi3: TensorNames = {
  ...folder,
  parts: {
    ...folder.parts,
    q: fused.qkv,
    k: fused.qkv,
    v: fused.qkv,
    gate: fused.gateUp,
    up: fused.gateUp,
  },
}

const together = { gateUp: "mlp.experts.gate_up_proj", down: "mlp.experts.down_proj" }

/** As transformers 5 has experts in memory, and writes them where it is asked not to convert. */
const withExpertsTogether = (
  names: TensorNames,
  source: Pick<TensorSource, "names">,
): TensorNames =>
  [...source.names()].some((name) => name.endsWith(together.gateUp))
    ? {
        ...names,
        expert: { gate: together.gateUp, up: together.gateUp, down: together.down },
      }
    : names

const folders: Readonly<Partial<Record<Architecture, TensorNames>>> = { gemma3, phi3 }

/**
 * Where files have the language model: those that read images, too, by the version of transformers,
 * and those of a model that was stored without its head.
 */
const places: readonly (readonly [model: string, head: string])[] = [
  ["language_model.model.", "language_model.lm_head"],
  ["model.language_model.", "lm_head"],
  ["model.text_model.", "lm_head"],
  ["", "lm_head"],
]

export const ggufNames = (architecture: Architecture): TensorNames =>
  architecture === "phi3" ? phi3Gguf : gguf

export const folderNames = (
  architecture: Architecture,
  source: Pick<TensorSource, "has" | "names">,
): TensorNames => {
  const own = folders[architecture] ?? folder
  const names = architecture === "qwen3moe" ? withExpertsTogether(own, source) : own
  const place = places.find(([model]) => source.has(`${model}embed_tokens.weight`))
  if (!place) return names
  const [model, head] = place
  return {
    ...names,
    embedding: `${model}embed_tokens`,
    finalNorm: `${model}norm`,
    head,
    layer: (index) => `${model}layers.${index}.`,
    ignored:
      /(^|\.)(vision_tower|vision_model|audio_tower|multi_modal_projector|connector|visual)\.|(^|\.)lm_head\.weight$|\.inv_freq$/,
  }
}
