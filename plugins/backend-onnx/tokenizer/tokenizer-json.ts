import type { Json } from "../../../core/json.ts"

export interface BytePairParts {
  /** Ids by token. */
  readonly vocab: Readonly<Record<string, number>>
  /** Pairs to join, best first. */
  readonly merges: readonly (readonly [string, string])[]
  /** Added tokens, which are matched in text before anything else. */
  readonly added: readonly (readonly [string, number])[]
  readonly normalizer: Json
  readonly preTokenizer: Json
  readonly model: Readonly<Record<string, Json>>
}

/** Builds a tokenizer.json (huggingface/tokenizers) of a BPE vocabulary. */
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
