import type { Json } from "../../../core/json.ts"

export interface BytePairParts {
  /** Token -> id. */
  readonly vocab: Readonly<Record<string, number>>
  /** Pairs that are joined, best first. */
  readonly merges: readonly (readonly [string, string])[]
  /** Tokens that are found in text before everything else. */
  readonly added: readonly (readonly [string, number])[]
  readonly normalizer: Json
  readonly preTokenizer: Json
  readonly model: Readonly<Record<string, Json>>
}

/** A tokenizer.json (huggingface/tokenizers) of a vocabulary of pairs. */
export const bytePairTokenizer = ({
  vocab,
  merges,
  added,
  normalizer,
  preTokenizer,
  model,
}: BytePairParts): Json => ({
  version: "1.0",
  truncation: null,
  padding: null,
  added_tokens: added.map(([content, id]) => ({
    id,
    content,
    single_word: false,
    lstrip: false,
    rstrip: false,
    normalized: false,
    special: false,
  })),
  normalizer,
  pre_tokenizer: preTokenizer,
  post_processor: null,
  decoder: null,
  model: {
    type: "BPE",
    dropout: null,
    unk_token: null,
    continuing_subword_prefix: null,
    end_of_word_suffix: null,
    fuse_unk: false,
    byte_fallback: false,
    ignore_merges: false,
    ...model,
    vocab,
    merges,
  },
})
