import type { Json } from "../../../core/json.ts"
import { countIn, type Metadata, numbersIn, textIn, textsIn } from "../weights/gguf-metadata.ts"
import { Damaged, Unsupported } from "../weights/model-file-error.ts"
import { type GgufVocabulary, ggufVocabulary } from "./gguf-vocabulary.ts"
import { isShown, mergesOf, spaceMark } from "./pieces.ts"
import { preTokenization } from "./pre-tokenizers.ts"
import { bytePairTokenizer } from "./tokenizer-json.ts"
import { advisedBy, type ChatLanguage, endsByName } from "./vocabulary.ts"

const key = (name: string) => `tokenizer.ggml.${name}`

const mergePair = (merge: string): readonly [string, string] => {
  const space = merge.indexOf(" ", 1)
  if (space < 0 || space === merge.length - 1)
    throw new Damaged(`the merge '${merge}' is not a pair`)
  return [merge.slice(0, space), merge.slice(space + 1)]
}

const idsByToken = (
  vocabulary: GgufVocabulary,
  ids: readonly number[],
): Readonly<Record<string, number>> => {
  const vocab = Object.fromEntries(ids.map((id) => [vocabulary.tokens[id]!, id]))
  if (Object.keys(vocab).length !== ids.length)
    throw new Damaged("its vocabulary has a token twice")
  return vocab
}

/** A tokenizer of byte-level BPE (`gpt2`): tokens in the 256-letter alphabet, and merges. */
const byteLevel = (metadata: Metadata, vocabulary: GgufVocabulary): Json => {
  const { preTokenizer, normalizer, ignoreMerges } = preTokenization(
    metadata.has(key("pre")) ? textIn(metadata, key("pre")) : "default",
  )
  const hidden = new Set(vocabulary.tokens.filter((_, id) => vocabulary.isControl(id)))
  return bytePairTokenizer({
    vocab: idsByToken(vocabulary, vocabulary.plain),
    merges: textsIn(metadata, key("merges"))
      .map(mergePair)
      .filter(([left, right]) => isShown(hidden, left, right)),
    added: vocabulary.plain
      .filter(vocabulary.isUserDefined)
      .map((id) => [vocabulary.tokens[id]!, id]),
    normalizer: normalizer ?? null,
    preTokenizer,
    model: { ignore_merges: ignoreMerges ?? false },
  })
}

const startsWithSpace = (metadata: Metadata): boolean =>
  metadata.get(key("add_space_prefix")) !== false

/** A tokenizer of SentencePiece (`llama`): pieces with scores. */
const sentencePiece = (metadata: Metadata, vocabulary: GgufVocabulary): Json => {
  const scores = numbersIn(metadata, key("scores"))
  if (scores.length !== vocabulary.tokens.length)
    throw new Damaged(`it has ${scores.length} scores for ${vocabulary.tokens.length} tokens`)
  const { plain, unknown, tokens } = vocabulary
  const isByte = (id: number) => /^<0x[0-9A-F]{2}>$/.test(tokens[id]!)
  const joined = plain.filter((id) => !isByte(id) && !vocabulary.isUserDefined(id))
  const bytes = plain.filter(isByte).length
  if (bytes !== 256)
    throw new Unsupported(
      `it has ${bytes} byte tokens, so not every text has tokens; this backend needs all 256`,
    )
  const marked = { type: "Replace", pattern: { String: " " }, content: spaceMark }
  return bytePairTokenizer({
    vocab: idsByToken(vocabulary, unknown === undefined ? plain : [...plain, unknown]),
    merges: mergesOf(joined.map((id) => ({ text: tokens[id]!, score: scores[id]! }))),
    added: plain.filter(vocabulary.isUserDefined).map((id) => [tokens[id]!, id]),
    normalizer: startsWithSpace(metadata)
      ? { type: "Sequence", normalizers: [{ type: "Prepend", prepend: spaceMark }, marked] }
      : marked,
    preTokenizer: null,
    model: {
      byte_fallback: true,
      unk_token: unknown === undefined ? null : tokens[unknown]!,
      fuse_unk: true,
    },
  })
}

const namedToken = (metadata: Metadata, vocabulary: GgufVocabulary, name: string): string => {
  const id = metadata.get(key(name))
  return typeof id === "number" ? (vocabulary.tokens[id] ?? "") : ""
}

const endTokens = (
  metadata: Metadata,
  vocabulary: GgufVocabulary,
  controlTokens: Readonly<Record<string, number>>,
): readonly number[] => {
  const named = ["eos_token_id", "eot_token_id", "eom_token_id"]
    .map(key)
    .filter((name) => metadata.has(name))
  const ids = named.map((name) =>
    metadata.get(name) === 0 ? 0 : countIn(metadata, name, vocabulary.tokens.length - 1),
  )
  const all = [...new Set([...ids, ...endsByName(controlTokens)])]
  if (!all.length)
    throw new Damaged(`it names no token that ends a text ('${key("eos_token_id")}')`)
  return all
}

/**
 * GGUF files don't say that the control tokens of Phi-3 take the white space behind them along;
 * llama.cpp knows it by the model's name.
 */
const strippingTokens = (
  metadata: Metadata,
  controlTokens: Readonly<Record<string, number>>,
): readonly number[] =>
  /phi[- ]?3/i.test(String(metadata.get("general.name") ?? ""))
    ? Object.entries(controlTokens).flatMap(([token, id]) =>
        ["<unk>", "<s>", "<|endoftext|>"].includes(token) ? [] : [id],
      )
    : []

const kinds = { gpt2: "byteLevel", llama: "pieces" } as const

export const ggufTemplate = (metadata: Metadata): string => {
  if (!metadata.has("tokenizer.chat_template"))
    throw new Unsupported(
      "it has no chat template ('tokenizer.chat_template')",
      "Name the model that was trained for chat, whose name often ends in Instruct or Chat",
    )
  return textIn(metadata, "tokenizer.chat_template")
}

const toolTemplateKey = "tokenizer.chat_template.tool_use"

/**
 * Reads tokenizer and chat template from a GGUF file's metadata; `size`: rows of the embedding
 * table. Throws `Damaged`.
 */
export const ggufLanguage = (metadata: Metadata, size: number): ChatLanguage => {
  if (!metadata.has(key("model"))) throw new Damaged(`it has no tokenizer ('${key("model")}')`)
  const model = textIn(metadata, key("model"))
  const spelling = kinds[model as keyof typeof kinds]
  if (!spelling)
    throw new Unsupported(
      `its tokenizer is '${model}'; this backend reads byte-level BPE ('gpt2') and SentencePiece BPE ('llama')`,
    )
  const vocabulary = ggufVocabulary(metadata, size, spelling)
  const controls = vocabulary.tokens.flatMap((token, id) =>
    vocabulary.isControl(id) ? [[token, id] as const] : [],
  )
  const controlTokens = Object.fromEntries(controls)
  return {
    vocabulary,
    tokenizer: (spelling === "byteLevel" ? byteLevel : sentencePiece)(metadata, vocabulary),
    controlTokens,
    strippingTokens: strippingTokens(metadata, controlTokens),
    template: ggufTemplate(metadata),
    ...(metadata.has(toolTemplateKey) && { toolTemplate: textIn(metadata, toolTemplateKey) }),
    bosToken: namedToken(metadata, vocabulary, "bos_token_id"),
    eosToken: namedToken(metadata, vocabulary, "eos_token_id"),
    endTokens: endTokens(metadata, vocabulary, controlTokens),
    startsWithSpace: spelling === "pieces" && startsWithSpace(metadata),
    ...advisedBy(metadata.get("general.sampling.temp")),
  }
}
