import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { seededRandom } from "../sampling/random.ts"
import { type FloatTensor, writeSafetensors } from "./safetensors-writer.ts"

/** A BERT with random weights and a vocabulary of letters and a few words. */
export const tinyBertShape = {
  layers: 2,
  width: 32,
  heads: 4,
  feedForward: 48,
  positions: 24,
  maxTokens: 20,
}

const special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
const letters = [..."abcdefghijklmnopqrstuvwxyz"]
export const tinyBertVocabulary = [
  ...special,
  ...letters,
  ...letters.map((letter) => `##${letter}`),
  ".",
  ":",
  "query",
]

const tokenizer = {
  version: "1.0",
  // as in published models: neither may have an effect
  truncation: { max_length: 4, strategy: "LongestFirst", stride: 0 },
  padding: {
    strategy: { Fixed: 16 },
    direction: "Right",
    pad_to_multiple_of: null,
    pad_id: 0,
    pad_type_id: 0,
    pad_token: "[PAD]",
  },
  added_tokens: special.map((content, id) => ({
    id,
    content,
    special: true,
    single_word: false,
    lstrip: false,
    rstrip: false,
    normalized: false,
  })),
  normalizer: {
    type: "BertNormalizer",
    clean_text: true,
    handle_chinese_chars: true,
    strip_accents: null,
    lowercase: true,
  },
  pre_tokenizer: { type: "BertPreTokenizer" },
  post_processor: {
    type: "TemplateProcessing",
    single: [
      { SpecialToken: { id: "[CLS]", type_id: 0 } },
      { Sequence: { id: "A", type_id: 0 } },
      { SpecialToken: { id: "[SEP]", type_id: 0 } },
    ],
    pair: [{ Sequence: { id: "A", type_id: 0 } }, { Sequence: { id: "B", type_id: 1 } }],
    special_tokens: {
      "[CLS]": { id: "[CLS]", ids: [2], tokens: ["[CLS]"] },
      "[SEP]": { id: "[SEP]", ids: [3], tokens: ["[SEP]"] },
    },
  },
  decoder: { type: "WordPiece", prefix: "##", cleanup: true },
  model: {
    type: "WordPiece",
    unk_token: "[UNK]",
    continuing_subword_prefix: "##",
    max_input_chars_per_word: 100,
    vocab: Object.fromEntries(tinyBertVocabulary.map((token, id) => [token, id])),
  },
}

const config = {
  model_type: "bert",
  _name_or_path: "tests/tiny-bert",
  hidden_act: "gelu",
  hidden_size: tinyBertShape.width,
  num_attention_heads: tinyBertShape.heads,
  num_hidden_layers: tinyBertShape.layers,
  intermediate_size: tinyBertShape.feedForward,
  vocab_size: tinyBertVocabulary.length,
  max_position_embeddings: tinyBertShape.positions,
  layer_norm_eps: 1e-12,
}

export const tinyBertTensors = (
  seed = 1,
  positions = tinyBertShape.positions,
): readonly FloatTensor[] => {
  const { width, feedForward, layers } = tinyBertShape
  const random = seededRandom(seed)
  const tensor = (
    name: string,
    shape: readonly number[],
    scale: number,
    offset = 0,
  ): FloatTensor => ({
    name,
    shape,
    values: Float32Array.from(
      { length: shape.reduce((a, b) => a * b) },
      () => offset + (random() - 0.5) * scale,
    ),
  })
  const norm = (name: string) => [
    tensor(`${name}.LayerNorm.weight`, [width], 0.5, 1),
    tensor(`${name}.LayerNorm.bias`, [width], 0.2),
  ]
  const dense = (name: string, rows: number, columns: number) => [
    tensor(`${name}.weight`, [rows, columns], 0.8),
    tensor(`${name}.bias`, [rows], 0.2),
  ]
  const tables = [
    tensor("embeddings.word_embeddings.weight", [tinyBertVocabulary.length, width], 1),
    tensor("embeddings.position_embeddings.weight", [positions, width], 1),
    tensor("embeddings.token_type_embeddings.weight", [2, width], 1),
    ...norm("embeddings"),
  ]
  const layer = (index: number) => {
    const at = (name: string) => `encoder.layer.${index}.${name}`
    const attention = ["query", "key", "value"].flatMap((name) =>
      dense(at(`attention.self.${name}`), width, width),
    )
    return [
      ...attention,
      ...dense(at("attention.output.dense"), width, width),
      ...norm(at("attention.output")),
      ...dense(at("intermediate.dense"), feedForward, width),
      ...dense(at("output.dense"), width, feedForward),
      ...norm(at("output")),
    ]
  }
  return [...tables, ...Array.from({ length: layers }, (_, index) => layer(index)).flat()]
}

/**
 * Writes the model's folder; `more` replaces files by their JSON. A window of `maxTokens` needs as
 * many positions, and four are unused.
 */
export const writeTinyBert = (
  folder: string,
  more: Readonly<Record<string, object>> = {},
  maxTokens = tinyBertShape.maxTokens,
): string => {
  const positions = maxTokens + tinyBertShape.positions - tinyBertShape.maxTokens
  mkdirSync(join(folder, "1_Pooling"), { recursive: true })
  const files = {
    "config.json": { ...config, max_position_embeddings: positions },
    "tokenizer.json": tokenizer,
    "sentence_bert_config.json": { max_seq_length: maxTokens },
    "1_Pooling/config.json": { pooling_mode_mean_tokens: true, pooling_mode_cls_token: false },
    ...more,
  }
  for (const [name, json] of Object.entries(files))
    writeFileSync(join(folder, name), JSON.stringify(json))
  writeFileSync(join(folder, "model.safetensors"), writeSafetensors(tinyBertTensors(1, positions)))
  return folder
}
