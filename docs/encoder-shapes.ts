import type { Json } from "../core/json.ts"

type Fields = Readonly<Record<string, Json>>

/** What the engine reads of a published encoder's or reranker's files. */
export interface EncoderShape {
  /** config.json, as far as it is read. */
  readonly config: Fields
  /** Bytes of a number in the published file. */
  readonly numberBytes: 2 | 4
  /** Other files, by their path. */
  readonly files?: Readonly<Record<string, Json>>
  /** Matrices of layers, and tables that tokens are looked up in. */
  readonly parameters: { readonly matrices: number; readonly tables: number }
}

type Sizes = readonly [layers: number, width: number, heads: number, feedForward: number]

const sizes = ([layers, width, heads, feedForward]: Sizes): Fields => ({
  hidden_size: width,
  num_hidden_layers: layers,
  num_attention_heads: heads,
  intermediate_size: feedForward,
})

const pooled = (mode: string) => ({
  "modules.json": ["Transformer", "Pooling", "Normalize"].map((type, index) => ({
    type: `sentence_transformers.models.${type}`,
    path: index ? `${index}_${type}` : "",
  })),
  "1_Pooling/config.json": { [`pooling_mode_${mode}`]: true, include_prompt: true },
})

/** A sequence classifier of one label. */
const classifier = { id2label: { 0: "LABEL_0" }, label2id: { LABEL_0: 0 } }

const withClassifier = (family: string, shape: EncoderShape): EncoderShape => {
  const architectures = [`${family}ForSequenceClassification`]
  return { ...shape, config: { ...shape.config, ...classifier, architectures } }
}

/** `factor` matrices of the feed-forward part: 2, or 3 where it is gated. */
const layersOf = ([layers, width, , feedForward]: Sizes, factor = 2): number =>
  layers * (4 * width * width + factor * width * feedForward)

const bertOf = (
  type: "bert" | "xlm-roberta",
  vocabulary: number,
  positions: number,
  of: Sizes,
): EncoderShape => ({
  config: {
    ...sizes(of),
    model_type: type,
    vocab_size: vocabulary,
    max_position_embeddings: positions,
    type_vocab_size: type === "bert" ? 2 : 1,
    layer_norm_eps: type === "bert" ? 1e-12 : 1e-5,
    hidden_act: "gelu",
    position_embedding_type: "absolute",
    pad_token_id: type === "bert" ? 0 : 1,
  },
  numberBytes: 4,
  parameters: { matrices: layersOf(of), tables: (vocabulary + positions) * of[1] },
})

const modernBert = (numberBytes: 2 | 4): EncoderShape => {
  const of: Sizes = [22, 768, 12, 1152]
  return {
    config: {
      ...sizes(of),
      model_type: "modernbert",
      vocab_size: 50_368,
      max_position_embeddings: 8192,
      global_attn_every_n_layers: 3,
      global_rope_theta: 160_000,
      local_rope_theta: 10_000,
      local_attention: 128,
      norm_eps: 1e-5,
      hidden_activation: "gelu",
      classifier_activation: "gelu",
      classifier_pooling: "mean",
      pad_token_id: 50_283,
    },
    numberBytes,
    parameters: { matrices: layersOf(of, 3), tables: 50_368 * 768 },
  }
}

const qwen3 = (positions: number): EncoderShape => {
  const [layers, width, heads, kvHeads, headSize, feedForward] = [28, 1024, 16, 8, 128, 3072]
  const attention = 2 * width * (heads + kvHeads) * headSize
  return {
    config: {
      ...sizes([layers, width, heads, feedForward]),
      architectures: ["Qwen3ForCausalLM"],
      model_type: "qwen3",
      attention_bias: false,
      head_dim: headSize,
      hidden_act: "silu",
      max_position_embeddings: positions,
      max_window_layers: layers,
      num_key_value_heads: kvHeads,
      rms_norm_eps: 1e-6,
      rope_scaling: null,
      rope_theta: 1_000_000,
      sliding_window: null,
      tie_word_embeddings: true,
      use_sliding_window: false,
      vocab_size: 151_669,
    },
    numberBytes: 2,
    parameters: {
      matrices: layers * (attention + 3 * width * feedForward),
      tables: 151_669 * width,
    },
  }
}

interface Towers {
  readonly type: "clip" | "siglip"
  readonly text: Sizes
  readonly vocabulary: number
  readonly positions: number
  readonly vision: Sizes
  readonly patch: number
  readonly projections: number
}

const towers = (of: Towers): EncoderShape => {
  const { type, text, vision, vocabulary, positions, patch } = of
  return {
    config: {
      model_type: type,
      ...(type === "clip" && { projection_dim: 768 }),
      text_config: {
        ...sizes(text),
        model_type: `${type}_text_model`,
        vocab_size: vocabulary,
        max_position_embeddings: positions,
      },
      vision_config: {
        ...sizes(vision),
        model_type: `${type}_vision_model`,
        image_size: 224,
        patch_size: patch,
      },
    },
    numberBytes: 4,
    parameters: {
      matrices: layersOf(text) + layersOf(vision) + of.projections + 3 * patch * patch * vision[1],
      tables: (vocabulary + positions) * text[1],
    },
  }
}

const pixels = (mean: number, deviation: number, more: Fields): Json => ({
  ...{ do_resize: true, do_normalize: true, do_rescale: true, rescale_factor: 1 / 255 },
  image_mean: [mean, mean, mean],
  image_std: [deviation, deviation, deviation],
  ...more,
})

const instructed = {
  "config_sentence_transformers.json": {
    prompts: {
      query:
        "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery:",
      document: "",
    },
  },
}

/** By the names of the files in config/models. */
export const encoderShapes: Readonly<Record<string, EncoderShape>> = {
  "multilingual-e5-small": {
    ...bertOf("bert", 250_037, 512, [12, 384, 12, 1536]),
    files: pooled("mean_tokens"),
  },
  "multilingual-e5-base": {
    ...bertOf("xlm-roberta", 250_002, 514, [12, 768, 12, 3072]),
    files: pooled("mean_tokens"),
  },
  "modernbert-embed-base": { ...modernBert(4), files: pooled("mean_tokens") },
  "gte-modernbert-base": { ...modernBert(2), files: pooled("cls_token") },
  "qwen3-embedding-0.6b": {
    ...qwen3(32_768),
    files: { ...pooled("lasttoken"), ...instructed },
  },
  "clip-vit-large-patch14": {
    ...towers({
      type: "clip",
      text: [12, 768, 12, 3072],
      vocabulary: 49_408,
      positions: 77,
      vision: [24, 1024, 16, 4096],
      patch: 14,
      projections: (768 + 1024) * 768,
    }),
    files: {
      "preprocessor_config.json": pixels(0.48, 0.27, {
        ...{ crop_size: 224, do_center_crop: true, resample: 3, size: 224 },
      }),
    },
  },
  "siglip2-base": {
    ...towers({
      type: "siglip",
      text: [12, 768, 12, 3072],
      vocabulary: 256_000,
      positions: 64,
      vision: [12, 768, 12, 3072],
      patch: 16,
      // the text's head, and the attention and feed-forward that pool the picture
      projections: 768 * 768 + 4 * 768 * 768 + 2 * 768 * 3072,
    }),
    files: {
      "preprocessor_config.json": pixels(0.5, 0.5, {
        ...{ resample: 2, size: { height: 224, width: 224 } },
      }),
      "tokenizer_config.json": {
        pad_token: "<pad>",
        added_tokens_decoder: { 0: { content: "<pad>" } },
      },
    },
  },
  "bge-reranker-v2-m3": withClassifier(
    "XLMRoberta",
    bertOf("xlm-roberta", 250_002, 8194, [24, 1024, 16, 4096]),
  ),
  "ms-marco-minilm-l6": withClassifier("Bert", bertOf("bert", 30_522, 512, [6, 384, 12, 1536])),
  "gte-reranker-modernbert-base": withClassifier("ModernBert", modernBert(2)),
  "qwen3-reranker-0.6b": qwen3(40_960),
}
