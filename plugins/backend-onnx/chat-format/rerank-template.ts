import { basename } from "node:path"
import type { ChatTokenizer } from "../tokenizer/chat-tokenizer.ts"
import { chatPrompt } from "./chat-prompt.ts"
import { controlGuard } from "./control-guard.ts"

export const rerankTemplates = ["chat", "qwen3-reranker"] as const
/** How a decoder is asked about a document: as a chat model, or as it was trained to be. */
export type RerankTemplate = (typeof rerankTemplates)[number]

export interface RerankQuestion {
  readonly query: string
  readonly instruction: string
  readonly template: RerankTemplate
}

/** Tokens up to where the model says yes or no. `refused`: the chat template's own message. */
export type QuestionPrompt = { readonly ids: Int32Array } | { readonly refused: string }

const system = (instruction: string) =>
  `${instruction}. Judge whether the document meets the query. Answer only "yes" or "no".`

const question = (query: string, document: string) =>
  `Query: ${query}\nDocument: ${document}\nIs the document about "${query}"? Answer yes or no.`

/**
 * One relevant and one irrelevant document, a prefix that all prompts of a request share. Picked by
 * trial on twenty queries, for a model of 135 million parameters; the README has the figures and
 * what they are worth.
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

const asChat = async (
  chat: ChatTokenizer,
  { query, instruction }: RerankQuestion,
  document: string,
): Promise<QuestionPrompt> => {
  const messages = [
    { role: "system", content: system(instruction) },
    ...examples.flatMap((example) => [
      { role: "user", content: question(example.query, example.document) },
      { role: "assistant", content: example.answer },
    ]),
    { role: "user", content: question(query, document) },
  ] as const
  // longer documents are read in windows rather than refused there
  const prompt = await chatPrompt(chat, { messages }, Number.POSITIVE_INFINITY)
  return "tooLong" in prompt ? { refused: "too long" } : prompt
}

/** The format of Qwen3-Reranker, as its model card has it. */
const qwen3 = {
  before:
    '<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and the Instruct provided. Note that the answer can only be "yes" or "no".<|im_end|>\n<|im_start|>user\n',
  after: "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n",
}

const asQwen3 = async (
  chat: ChatTokenizer,
  { query, instruction }: RerankQuestion,
  document: string,
): Promise<QuestionPrompt> => {
  const body = `<Instruct>: ${instruction}\n<Query>: ${query}\n<Document>: ${document}`
  const guard = controlGuard(chat.format.controlTokens, [body])
  if (!guard) return { refused: "they use every private-use character" }
  const ids: number[] = []
  for (const piece of guard.parse(qwen3.before + guard.shield(body) + qwen3.after))
    if (typeof piece === "number") ids.push(piece)
    else
      for (const id of (
        await chat.tokenizer.encode(piece, null, { addSpecialTokens: false })
      ).getIds())
        ids.push(id)
  return { ids: Int32Array.from(ids) }
}

/** Renders the question about one document. */
export const questionPrompt = (
  chat: ChatTokenizer,
  asked: RerankQuestion,
  document: string,
): Promise<QuestionPrompt> =>
  asked.template === "chat" ? asChat(chat, asked, document) : asQwen3(chat, asked, document)

/**
 * The words of the answer: Qwen3-Reranker was trained on these two tokens alone, a chat model
 * spreads its answer over all spellings.
 */
export const answerSpellings: Readonly<Record<RerankTemplate, "one" | "all">> = {
  chat: "all",
  "qwen3-reranker": "one",
}

/**
 * What a model's files say: later publications of Qwen3-Reranker have a chat template that renders
 * query and document, earlier ones that of Qwen3, so there the name decides.
 */
export const ownRerankTemplate = (path: string, chatTemplate: string): RerankTemplate =>
  /<Instruct>[\s\S]*<Query>[\s\S]*<Document>/.test(chatTemplate) ||
  /qwen3[-_. ]?reranker/i.test(basename(path))
    ? "qwen3-reranker"
    : "chat"
