import type { Json } from "../../../core/json.ts"
import { Damaged } from "../weights/gguf-metadata.ts"
import { preTokenization } from "./pre-tokenizers.ts"
import type { Vocabulary } from "./vocabulary.ts"

const mergePair = (merge: string): readonly string[] => {
  const space = merge.indexOf(" ", 1)
  if (space < 0 || space === merge.length - 1) throw new Damaged(`the merge '${merge}' is not a pair`)
  return [merge.slice(0, space), merge.slice(space + 1)]
}

/**
 * A tokenizer.json (huggingface/tokenizers) of a byte-level BPE vocabulary. Control tokens are left out on purpose:
 * no text can become one; only the chat template's own text is searched for them (`chat-prompt.ts`).
 */
export const tokenizerJson = (vocabulary: Vocabulary): Json => {
  const { preTokenizer, ignoreMerges } = preTokenization(vocabulary.pre)
  const ids = vocabulary.tokens.map((_, id) => id).filter((id) => !vocabulary.isControl(id))
  const vocab = Object.fromEntries(ids.map((id) => [vocabulary.tokens[id]!, id]))
  if (Object.keys(vocab).length !== ids.length) throw new Damaged("its vocabulary has a token twice")
  const added = ids.filter(vocabulary.isUserDefined)
  return {
    version: "1.0",
    truncation: null,
    padding: null,
    added_tokens: added.map((id) => ({ id, content: vocabulary.tokens[id], single_word: false, lstrip: false, rstrip: false, normalized: false, special: false })),
    normalizer: null,
    pre_tokenizer: preTokenizer,
    post_processor: null,
    decoder: { type: "ByteLevel", add_prefix_space: true, trim_offsets: true, use_regex: true },
    model: {
      type: "BPE",
      dropout: null,
      unk_token: null,
      continuing_subword_prefix: null,
      end_of_word_suffix: null,
      fuse_unk: false,
      byte_fallback: false,
      ignore_merges: ignoreMerges ?? false,
      vocab,
      merges: vocabulary.merges.map(mergePair),
    },
  }
}
