/** The sizes of a published decoder, from its config.json. */
export interface ModelShape {
  readonly layers: number
  readonly width: number
  readonly feedForward: number
  readonly heads: number
  readonly kvHeads: number
  readonly headSize: number
  readonly vocabulary: number
  /** The output head is the embedding table. */
  readonly tiedHead: boolean
  /** Queries, keys and values are one matrix, which llama.cpp keeps in 5 bits. */
  readonly hasFusedAttention?: true
  /** The published size of the GGUF file. */
  readonly fileBytes: number
}

type Row = readonly [number, number, number, number, number, number, number, boolean, number]

const shape = (...row: Row): ModelShape => {
  const [layers, width, feedForward, heads, kvHeads, headSize, vocabulary, tiedHead, fileBytes] =
    row
  return {
    ...{ layers, width, feedForward, heads, kvHeads, headSize, vocabulary, tiedHead, fileBytes },
  }
}

/** By the names of the files in config/models. */
export const modelShapes: Readonly<Record<string, ModelShape>> = {
  "qwen3-0.6b": shape(28, 1024, 3072, 16, 8, 128, 151_936, true, 639_446_688),
  "qwen3-1.7b": shape(28, 2048, 6144, 16, 8, 128, 151_936, true, 1_834_426_016),
  "qwen3-4b": shape(36, 2560, 9728, 32, 8, 128, 151_936, true, 2_497_280_256),
  "qwen3-8b": shape(36, 4096, 12_288, 32, 8, 128, 151_936, false, 5_027_783_488),
  "llama-3.2-1b": shape(16, 2048, 8192, 32, 8, 64, 128_256, true, 807_694_464),
  "llama-3.2-3b": shape(28, 3072, 8192, 24, 8, 128, 128_256, true, 2_019_377_696),
  "llama-3.1-8b": shape(32, 4096, 14_336, 32, 8, 128, 128_256, false, 4_920_739_232),
  "gemma-3-270m": shape(18, 640, 2048, 4, 1, 256, 262_144, true, 291_545_600),
  "gemma-3-1b": shape(26, 1152, 6912, 4, 1, 256, 262_144, true, 806_058_240),
  "gemma-3-4b": shape(34, 2560, 10_240, 8, 4, 256, 262_208, true, 2_489_757_856),
  "phi-4-mini": {
    ...shape(32, 3072, 8192, 24, 8, 128, 200_064, true, 2_491_874_272),
    hasFusedAttention: true,
  },
  "smollm2-360m": shape(32, 960, 2560, 15, 5, 64, 49_152, true, 386_404_992),
  "smollm2-1.7b": shape(24, 2048, 8192, 32, 32, 64, 49_152, true, 1_055_609_536),
  "smollm3-3b": shape(36, 2048, 11_008, 16, 4, 128, 128_256, true, 1_915_305_312),
  "mistral-7b-v0.3": shape(32, 4096, 14_336, 32, 8, 128, 32_768, false, 4_372_812_000),
}
