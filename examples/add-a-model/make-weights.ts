import { mkdirSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"

/*
 * Writes weights/: a chat model as the hub has one (config.json, model.safetensors, tokenizer),
 * with one layer of random weights. `npx tsx make-weights.ts` writes the same bytes every time.
 */

const width = 32
const heads = 4
const keyHeads = 2
const feedForward = 64
const specials = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]

/** GPT-2's names of the 256 bytes: printable characters stand for themselves. */
const byteNames = () => {
  const isPlain = (byte: number) => (byte > 32 && byte < 127) || (byte > 160 && byte !== 173)
  let next = 256
  return Array.from({ length: 256 }, (_, byte) =>
    String.fromCodePoint(isPlain(byte) ? byte : next++),
  )
}
const vocabulary = [...specials, ...byteNames()]

const tokenizer = {
  version: "1.0",
  added_tokens: specials.map((content, id) => ({
    id,
    content,
    single_word: false,
    lstrip: false,
    rstrip: false,
    normalized: false,
    special: true,
  })),
  normalizer: null,
  pre_tokenizer: {
    type: "ByteLevel",
    add_prefix_space: false,
    trim_offsets: true,
    use_regex: true,
  },
  decoder: { type: "ByteLevel", add_prefix_space: true, trim_offsets: true, use_regex: true },
  model: {
    type: "BPE",
    vocab: Object.fromEntries(vocabulary.map((name, id) => [name, id])),
    merges: [],
  },
}

const tokenizerConfig = {
  bos_token: "<|im_start|>",
  eos_token: "<|im_end|>",
  tokenizer_class: "PreTrainedTokenizerFast",
  chat_template:
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}",
}

const config = {
  architectures: ["LlamaForCausalLM"],
  model_type: "llama",
  hidden_act: "silu",
  hidden_size: width,
  intermediate_size: feedForward,
  num_hidden_layers: 1,
  num_attention_heads: heads,
  num_key_value_heads: keyHeads,
  head_dim: width / heads,
  vocab_size: vocabulary.length,
  max_position_embeddings: 512,
  rope_theta: 10000,
  rms_norm_eps: 1e-5,
  tie_word_embeddings: true,
  bos_token_id: 1,
  eos_token_id: 2,
}

const keyWidth = (width / heads) * keyHeads
const layer = "model.layers.0"
const shapes: Readonly<Record<string, readonly number[]>> = {
  "model.embed_tokens.weight": [vocabulary.length, width],
  [`${layer}.input_layernorm.weight`]: [width],
  [`${layer}.self_attn.q_proj.weight`]: [width, width],
  [`${layer}.self_attn.k_proj.weight`]: [keyWidth, width],
  [`${layer}.self_attn.v_proj.weight`]: [keyWidth, width],
  [`${layer}.self_attn.o_proj.weight`]: [width, width],
  [`${layer}.post_attention_layernorm.weight`]: [width],
  [`${layer}.mlp.gate_proj.weight`]: [feedForward, width],
  [`${layer}.mlp.up_proj.weight`]: [feedForward, width],
  [`${layer}.mlp.down_proj.weight`]: [width, feedForward],
  "model.norm.weight": [width],
}

/** A linear congruential generator: -0.5 to 0.5, the same numbers every time. */
const makeRandom = (seed: number) => {
  let state = seed
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return state / 2 ** 32 - 0.5
  }
}

/**
 * Eight bytes of length, a JSON header, then the tensors one after the other: random matrices, and
 * vectors of ones.
 */
export const safetensors = (
  shapes: Readonly<Record<string, readonly number[]>>,
  seed: number,
): Buffer => {
  const random = makeRandom(seed)
  const header: Record<string, object> = {}
  const parts: Buffer[] = []
  let offset = 0
  for (const [name, shape] of Object.entries(shapes)) {
    const count = shape.reduce((product, size) => product * size, 1)
    const values = Float32Array.from({ length: count }, () => (shape.length > 1 ? random() : 1))
    const bytes = Buffer.from(values.buffer)
    header[name] = { dtype: "F32", shape, data_offsets: [offset, offset + bytes.length] }
    parts.push(bytes)
    offset += bytes.length
  }
  const text = Buffer.from(JSON.stringify(header))
  const length = Buffer.alloc(8)
  length.writeBigUInt64LE(BigInt(text.length))
  return Buffer.concat([length, text, ...parts])
}

/** The files of `weights/`, by name. */
export const files = (): Readonly<Record<string, Buffer>> => {
  const json = (value: unknown) => Buffer.from(`${JSON.stringify(value, undefined, 2)}\n`)
  return {
    "config.json": json(config),
    "tokenizer.json": json(tokenizer),
    "tokenizer_config.json": json(tokenizerConfig),
    "model.safetensors": safetensors(shapes, 1),
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const folder = join(dirname(fileURLToPath(import.meta.url)), "weights")
  mkdirSync(folder, { recursive: true })
  for (const [name, bytes] of Object.entries(files())) writeFileSync(join(folder, name), bytes)
}
