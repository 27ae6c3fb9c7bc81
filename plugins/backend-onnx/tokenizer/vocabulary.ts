import type { GgufFile } from "../weights/gguf-file.ts"
import { countIn, Damaged, numbersIn, textIn, textsIn } from "../weights/gguf-metadata.ts"
import { fromByteLevel, toByteLevel } from "./byte-level.ts"

/** Numbers of `tokenizer.ggml.token_type`. */
const kinds = { unknown: 2, control: 3, userDefined: 4 } as const

/** The vocabulary of a byte-level BPE model, from a GGUF file's metadata. */
export interface Vocabulary {
  readonly tokens: readonly string[]
  readonly merges: readonly string[]
  readonly pre: string
  isControl(id: number): boolean
  isUserDefined(id: number): boolean
  /** The bytes of text that a token stands for; none for a control token. */
  bytesOf(id: number): Buffer
}

/** Throws `Damaged` when it is not byte-level BPE or does not fit the embedding table. */
export const vocabularyOf = (file: GgufFile, size: number): Vocabulary => {
  const { metadata } = file.header
  const model = textIn(metadata, "tokenizer.ggml.model")
  if (model !== "gpt2") throw new Damaged(`its tokenizer is '${model}'; this backend reads byte-level BPE ('gpt2')`)
  const tokens = textsIn(metadata, "tokenizer.ggml.tokens")
  if (tokens.length !== size) throw new Damaged(`its vocabulary has ${tokens.length} tokens, its embedding table ${size}`)
  const types = numbersIn(metadata, "tokenizer.ggml.token_type")
  if (types.length !== size) throw new Damaged(`it has ${types.length} token types for ${size} tokens`)
  const isControl = (id: number) => types[id] === kinds.control || types[id] === kinds.unknown
  const isUserDefined = (id: number) => types[id] === kinds.userDefined
  const bytesOf = (id: number) => (isControl(id) ? Buffer.alloc(0) : isUserDefined(id) ? Buffer.from(tokens[id]!) : fromByteLevel(tokens[id]!))
  return {
    tokens,
    merges: textsIn(metadata, "tokenizer.ggml.merges"),
    pre: metadata.has("tokenizer.ggml.pre") ? textIn(metadata, "tokenizer.ggml.pre") : "default",
    isControl,
    isUserDefined,
    bytesOf,
  }
}

// tokens that end a turn, whatever the metadata name as the one end token
const endNames = new Set(["<|im_end|>", "<|endoftext|>", "<|eot_id|>", "<|end_of_text|>", "<|end|>", "<end_of_turn>", "</s>"])

/** Tokens after which the model has nothing more to say. */
export const endTokens = (file: GgufFile, vocabulary: Vocabulary): readonly number[] => {
  const { metadata } = file.header
  const named = ["tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id"].filter((key) => metadata.has(key))
  const ids = new Set(named.map((key) => (metadata.get(key) === 0 ? 0 : countIn(metadata, key, vocabulary.tokens.length - 1))))
  for (const [id, token] of vocabulary.tokens.entries()) if (vocabulary.isControl(id) && endNames.has(token)) ids.add(id)
  if (!ids.size) throw new Damaged("it names no token that ends a text ('tokenizer.ggml.eos_token_id')")
  return [...ids]
}

/** Ids of the spellings that are one token each. */
export const idsOfWords = (vocabulary: Vocabulary, words: readonly string[]): readonly number[] => {
  const wanted = new Set(words.map(toByteLevel))
  return vocabulary.tokens.flatMap((token, id) => (wanted.has(token) && !vocabulary.isControl(id) ? [id] : []))
}
