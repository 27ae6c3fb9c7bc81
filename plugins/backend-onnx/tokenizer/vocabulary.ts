import type { Json } from "../../../core/json.ts"

/** The tokens of a model and their bytes. */
export interface Vocabulary {
  /**
   * Tokens by id; ids that the tokenizer does not know are empty. There may be fewer tokens than
   * logits.
   */
  readonly tokens: readonly string[]
  isControl(id: number): boolean
  /** Returns the bytes of text that a token stands for; none for a control token. */
  bytesOf(id: number): Buffer
}

/** Tokenizer, chat template and vocabulary of a model, as read from its files. */
export interface ChatLanguage {
  readonly vocabulary: Vocabulary
  /**
   * A tokenizer.json (huggingface/tokenizers) without control tokens:
   * no text from outside can become one; only the chat template's own text is searched for them
   * (`chat-prompt.ts`).
   */
  readonly tokenizer: Json
  /** The tokenizer for text that does not begin the prompt, where it differs. */
  readonly laterTokenizer?: Json
  /** Ids of control tokens, by text. */
  readonly controlTokens: Readonly<Record<string, number>>
  /** Control tokens that take the white space behind them along. */
  readonly strippingTokens?: readonly number[]
  /** Control tokens that take the white space before them along. */
  readonly strippingBefore?: readonly number[]
  readonly template: string
  /** The template of requests with tools, where they have one of their own. */
  readonly toolTemplate?: string
  readonly bosToken: string
  readonly eosToken: string
  /** Ids of tokens that end an answer. */
  readonly endTokens: readonly number[]
  /** The tokenizer begins a text's first word with a space that is not part of the text. */
  readonly startsWithSpace: boolean
  /** What the files say to sample answers with; absent: nothing, or no sampling. */
  readonly advisedTemperature?: number
}

/** A temperature that the API takes; files may say anything. Those of GGUF have 32 bits: 0.6000000238. */
export const advisedBy = (value: unknown): Pick<ChatLanguage, "advisedTemperature"> =>
  typeof value === "number" && value >= 0 && value <= 2
    ? { advisedTemperature: Math.round(value * 1e4) / 1e4 }
    : {}

// tokens that end a turn, besides those that the files name
const endNames = [
  "<|im_end|>",
  "<|endoftext|>",
  "<|eot_id|>",
  // ends a call of Llama 3.x that awaits its result; GGUF files name no key for it
  "<|eom_id|>",
  "<|end_of_text|>",
  "<|end|>",
  "<end_of_turn>",
  "</s>",
]

/**
 * Tokens with these names are control tokens whatever a GGUF file says: those of some publications
 * of Gemma 3 are typed as text, and llama.cpp overrides that for ends of turns, too. `</s>` is an
 * ordinary word of Qwen's vocabulary.
 */
export const turnMarkers: ReadonlySet<string> = new Set([
  ...endNames.filter((name) => name !== "</s>"),
  "<|im_start|>",
  "<|start_header_id|>",
  "<|end_header_id|>",
  "<start_of_turn>",
])

export const endsByName = (controlTokens: Readonly<Record<string, number>>): readonly number[] =>
  endNames.flatMap((name) => (Object.hasOwn(controlTokens, name) ? [controlTokens[name]!] : []))

/** Returns the ids of those spellings that are a single token. */
export const idsOfWords = (
  { tokens }: Pick<Vocabulary, "tokens">,
  bytesOf: (id: number) => Uint8Array,
  words: readonly string[],
): readonly number[] => {
  const wanted = words.map((word) => Buffer.from(word))
  const most = Math.max(...wanted.map(({ length }) => length))
  return tokens.flatMap((_, id) => {
    const bytes = bytesOf(id)
    return bytes.length <= most && wanted.some((word) => word.equals(bytes)) ? [id] : []
  })
}
