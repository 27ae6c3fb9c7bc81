import type { Json } from "../../../core/json.ts"

/** What the tokens of a model stand for. */
export interface Vocabulary {
  /** By id; those that the tokenizer does not know are empty. There may be fewer than the model has logits. */
  readonly tokens: readonly string[]
  isControl(id: number): boolean
  /** The bytes of text that a token stands for; none for a control token. */
  bytesOf(id: number): Buffer
}

/** Everything that makes tokens of a chat, and text of tokens. */
export interface ChatLanguage {
  readonly vocabulary: Vocabulary
  /**
   * A tokenizer.json (huggingface/tokenizers). Control tokens are left out on purpose:
   * no text can become one; only the chat template's own text is searched for them (`chat-prompt.ts`).
   */
  readonly tokenizer: Json
  /** For text that does not begin the prompt, where that makes a difference. */
  readonly laterTokenizer?: Json
  /** Text of a control token -> its id. */
  readonly controlTokens: Readonly<Record<string, number>>
  readonly template: string
  readonly bosToken: string
  readonly eosToken: string
  /** Tokens after which the model has nothing more to say. */
  readonly endTokens: readonly number[]
  /** A text's first word begins with a space that is no part of the text. */
  readonly startsWithSpace: boolean
}

// tokens that end a turn, whatever the files name as the one end token
const endNames = [
  "<|im_end|>",
  "<|endoftext|>",
  "<|eot_id|>",
  "<|end_of_text|>",
  "<|end|>",
  "<end_of_turn>",
  "</s>",
]

export const endsByName = (controlTokens: Readonly<Record<string, number>>): readonly number[] =>
  endNames.flatMap((name) => (Object.hasOwn(controlTokens, name) ? [controlTokens[name]!] : []))

/** Ids of the spellings that are one token each. */
export const idsOfWords = (vocabulary: Vocabulary, words: readonly string[]): readonly number[] => {
  const wanted = new Set(words)
  return vocabulary.tokens.flatMap((_, id) =>
    wanted.has(vocabulary.bytesOf(id).toString("utf8")) ? [id] : [],
  )
}
