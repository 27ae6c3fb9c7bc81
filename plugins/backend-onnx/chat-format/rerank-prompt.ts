import type { ChatTokenizer } from "../tokenizer/chat-tokenizer.ts"
import { chatPrompt, type Prompt } from "./chat-prompt.ts"

export interface RerankPromptRequest {
  readonly query: string
  readonly documents: readonly string[]
  readonly instruction: string
  readonly contextTokens: number
}

/** `queryTooLong`: a lower bound of the tokens of the prompt without a document. */
export type RerankPrompts =
  | { readonly prompts: readonly Int32Array[] }
  | { readonly queryTooLong: number }
  | { readonly refused: string }

const system = (instruction: string) =>
  `${instruction}. Judge whether the document meets the query. Answer only "yes" or "no".`

const question = (query: string, document: string) =>
  `Query: ${query}\nDocument: ${document}\nIs the document about "${query}"? Answer yes or no.`

/**
 * One relevant and one irrelevant document, a prefix that all prompts of a request share. Picked by
 * trial on twenty queries, for a model of 135 million
 * parameters; the README has the figures and what they are worth.
 */
const examples = [
  {
    query: "how tall is Mount Everest",
    document: "Mount Everest rises 8,849 metres above sea level.",
    answer: "yes",
  },
  {
    query: "how tall is Mount Everest",
    document:
      "Beginners improve fastest by playing slow games of chess and solving tactics puzzles.",
    answer: "no",
  },
]

const promptOf = (
  chat: ChatTokenizer,
  request: RerankPromptRequest,
  document: string,
): Promise<Prompt> =>
  chatPrompt(
    chat,
    {
      messages: [
        { role: "system", content: system(request.instruction) },
        ...examples.flatMap((example) => [
          { role: "user", content: question(example.query, example.document) },
          { role: "assistant", content: example.answer },
        ]),
        { role: "user", content: question(request.query, document) },
      ],
    },
    // longer documents are truncated here rather than refused there
    Number.POSITIVE_INFINITY,
  )

const withoutHalfCharacter = (text: string): string => text.replace(/[\ud800-\udbff]$/, "")

/** Returns the document's first `tokens` tokens, as text. */
const cut = async (chat: ChatTokenizer, document: string, tokens: number): Promise<string> => {
  if (tokens < 1) return ""
  const encoded = await chat.tokenizer.encode(document, null, { addSpecialTokens: false })
  const end = encoded.getOffsets()[tokens - 1]?.[1]
  // offsets count code points
  return end === undefined ? document : Array.from(document).slice(0, end).join("")
}

/** Few texts have more characters a token. */
const likelyCharacters = 8

/**
 * Truncates a document until its prompt fits. Cutting may change how the last word is tokenized, so
 * the tokens are counted again.
 */
const fitted = async (
  chat: ChatTokenizer,
  request: RerankPromptRequest,
  document: string,
  capacity: number,
): Promise<Prompt> => {
  // as long as it fits, more is tokenized, up to what can't fit in any way
  let characters = capacity * likelyCharacters
  let start = withoutHalfCharacter(document.slice(0, characters))
  let prompt = await promptOf(chat, request, start)
  while (
    "ids" in prompt &&
    prompt.ids.length <= request.contextTokens &&
    characters < Math.min(document.length, capacity * chat.format.longestTokenBytes)
  ) {
    characters *= 4
    start = withoutHalfCharacter(document.slice(0, characters))
    prompt = await promptOf(chat, request, start)
  }
  for (
    let kept = capacity;
    "ids" in prompt && prompt.ids.length > request.contextTokens && kept > 0;
  ) {
    prompt = await promptOf(chat, request, await cut(chat, start, kept))
    if ("ids" in prompt) kept -= Math.max(1, prompt.ids.length - request.contextTokens)
  }
  return prompt
}

/**
 * Asks a yes-or-no question about each document. A document that does not fit is truncated at its
 * end.
 */
export const rerankPrompts = async (
  chat: ChatTokenizer,
  request: RerankPromptRequest,
): Promise<RerankPrompts> => {
  const atLeast = Math.ceil(
    Buffer.byteLength(request.query + request.instruction) / chat.format.longestTokenBytes,
  )
  if (atLeast > request.contextTokens) return { queryTooLong: atLeast }
  const empty = await promptOf(chat, request, "")
  if (!("ids" in empty)) return { refused: "refused" in empty ? empty.refused : "too long" }
  const capacity = request.contextTokens - empty.ids.length
  if (capacity < 1) return { queryTooLong: empty.ids.length }
  const prompts: Int32Array[] = []
  for (const document of request.documents) {
    const prompt = await fitted(chat, request, document, capacity)
    if (!("ids" in prompt)) return { refused: "refused" in prompt ? prompt.refused : "too long" }
    prompts.push(prompt.ids.length > request.contextTokens ? empty.ids : prompt.ids)
  }
  return { prompts }
}
