import { seededRandom } from "../sampling/random.ts"
import { byteAlphabet } from "../tokenizer/byte-level.ts"
import { type GgufContent, type GgufTensor, writeGguf } from "./gguf-writer.ts"

/**
 * A Llama with random weights and grouped-query attention, and a vocabulary of all bytes, a few
 * words and control tokens.
 */
export const tinyShape = {
  layers: 2,
  width: 64,
  heads: 4,
  kvHeads: 2,
  headSize: 16,
  feedForward: 96,
  contextTokens: 256,
  ropeBase: 10_000,
  normEpsilon: 1e-5,
}

/** A prompt of so many of its tokens: other ones for another seed. */
export const tinyPrompt = (length: number, seed = 1): Int32Array =>
  Int32Array.from({ length }, (_, i) => 3 + ((i * 7919 + seed * 104_729 + i * i) % 250))

const controls = ["<|im_start|>", "<|im_end|>", "<|endoftext|>"]

const words: readonly (readonly string[])[] = [
  ["y", "e", "s"],
  ["n", "o"],
  ["t", "h", "e"],
]

const vocabulary = (): {
  readonly tokens: readonly string[]
  readonly merges: readonly string[]
  readonly types: readonly number[]
} => {
  const tokens = [...controls, ...byteAlphabet]
  const merges: string[] = []
  for (const word of words)
    for (let length = 2; length <= word.length; length++) {
      tokens.push(word.slice(0, length).join(""))
      merges.push(`${word.slice(0, length - 1).join("")} ${word[length - 1]}`)
    }
  return { tokens, merges, types: tokens.map((_, id) => (id < controls.length ? 3 : 1)) }
}

const template =
  "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"

type TinyShape = typeof tinyShape

const metadata = (shape: TinyShape) => {
  const { tokens, merges, types } = vocabulary()
  return {
    "general.architecture": "llama",
    "llama.block_count": shape.layers,
    "llama.context_length": shape.contextTokens,
    "llama.embedding_length": shape.width,
    "llama.feed_forward_length": shape.feedForward,
    "llama.attention.head_count": shape.heads,
    "llama.attention.head_count_kv": shape.kvHeads,
    "llama.attention.layer_norm_rms_epsilon": { f32: shape.normEpsilon },
    "llama.rope.freq_base": { f32: shape.ropeBase },
    "tokenizer.ggml.model": "gpt2",
    "tokenizer.ggml.pre": "smollm",
    "tokenizer.ggml.tokens": tokens,
    "tokenizer.ggml.token_type": types,
    "tokenizer.ggml.merges": merges,
    "tokenizer.ggml.bos_token_id": 0,
    "tokenizer.ggml.eos_token_id": 1,
    "tokenizer.chat_template": template,
  }
}

const floatTensor = (
  name: string,
  dimensions: readonly number[],
  next: () => number,
): GgufTensor => {
  const values = Float32Array.from({ length: dimensions.reduce((a, b) => a * b, 1) }, next)
  return { name, dimensions, type: 0, bytes: new Uint8Array(values.buffer) }
}

/** Deterministic: the same seed gives the same weights. */
export const tinyLlama = (seed = 1, changes: Partial<TinyShape> = {}): GgufContent => {
  const shape = { ...tinyShape, ...changes }
  const { width, heads, kvHeads, headSize, feedForward, layers } = shape
  const random = seededRandom(seed)
  const weights = (name: string, rows: number, columns: number) =>
    floatTensor(name, [columns, rows], () => ((random() - 0.5) * 3.4) / Math.sqrt(columns))
  const norm = (name: string) => floatTensor(name, [width], () => 0.5 + random())
  const tensors = [
    floatTensor("token_embd.weight", [width, vocabulary().tokens.length], () => random() - 0.5),
    norm("output_norm.weight"),
  ]
  for (let layer = 0; layer < layers; layer++) {
    const at = (name: string) => `blk.${layer}.${name}.weight`
    tensors.push(norm(at("attn_norm")), norm(at("ffn_norm")))
    tensors.push(
      weights(at("attn_q"), heads * headSize, width),
      weights(at("attn_k"), kvHeads * headSize, width),
      weights(at("attn_v"), kvHeads * headSize, width),
    )
    tensors.push(weights(at("attn_output"), width, heads * headSize))
    tensors.push(
      weights(at("ffn_gate"), feedForward, width),
      weights(at("ffn_up"), feedForward, width),
      weights(at("ffn_down"), width, feedForward),
    )
  }
  return { metadata: metadata(shape), tensors }
}

export const tinyLlamaFile = (seed = 1): Buffer => writeGguf(tinyLlama(seed))
