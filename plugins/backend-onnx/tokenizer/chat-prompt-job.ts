import { chatPrompt, type Prompt, type PromptMessage } from "./chat-prompt.ts"
import { loadChatTokenizer } from "./chat-tokenizer.ts"

export interface ChatPromptInput {
  /** Of the built graph; the tokenizer lies beside it. */
  readonly folder: string
  readonly messages: readonly PromptMessage[]
  readonly contextTokens: number
}

/** Runs in the pool of threads. */
export default (input: ChatPromptInput): Promise<Prompt> => chatPrompt(loadChatTokenizer(input.folder), input.messages, input.contextTokens)
