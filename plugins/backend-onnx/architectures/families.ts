import type { Architecture, DecoderConfig } from "./decoder-config.ts"

/** What an architecture does in every model of it, whatever the file says. */
interface Family {
  readonly headNorms?: true
  readonly outerNorms?: true
  readonly activation?: "gelu"
  /** Embeddings are multiplied by the square root of the width. */
  readonly scalesEmbedding?: true
  /** Every n-th layer sees everything, the others through a sliding window. */
  readonly globalEvery?: number
  /** Rotary base of the layers with a sliding window, where it is one of its own. */
  readonly localBase?: number
  /** Every n-th layer has no rotary embedding. */
  readonly unrotatedEvery?: number
}

export const families: Readonly<Record<Architecture, Family>> = {
  llama: {},
  mistral: {},
  qwen2: {},
  qwen3: { headNorms: true },
  gemma3: {
    headNorms: true,
    outerNorms: true,
    activation: "gelu",
    scalesEmbedding: true,
    globalEvery: 6,
    localBase: 10_000,
  },
  smollm3: { unrotatedEvery: 4 },
  phi3: {},
  qwen3moe: { headNorms: true },
}

export type AttentionKind = "full_attention" | "sliding_attention"

/** Whether it is an n-th layer, the first being number 1. */
export const isNth = (n: number, layer: number): boolean => (layer + 1) % n === 0

/** The kind of each layer, of which every n-th one sees everything. */
export const kindsByPattern = (layers: number, globalEvery: number): readonly AttentionKind[] =>
  Array.from({ length: layers }, (_, layer) =>
    isNth(globalEvery, layer) ? "full_attention" : "sliding_attention",
  )

/** What follows from an architecture and the sizes of a model. */
export const familyParts = (
  architecture: Architecture,
  width: number,
): Pick<DecoderConfig, "headNorms" | "outerNorms" | "activation" | "embeddingScale"> => {
  const { headNorms, outerNorms, activation, scalesEmbedding } = families[architecture]
  return {
    headNorms: headNorms === true,
    outerNorms: outerNorms === true,
    activation: activation ?? "silu",
    embeddingScale: scalesEmbedding ? Math.fround(Math.sqrt(width)) : 1,
  }
}
