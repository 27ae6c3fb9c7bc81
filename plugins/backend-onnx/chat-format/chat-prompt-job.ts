import { loadChatTokenizer } from "../tokenizer/chat-tokenizer.ts"
import { chatPrompt, type Prompt, type PromptRequest } from "./chat-prompt.ts"

export interface ChatPromptInput extends PromptRequest {
  /** Of the built graph; the tokenizer lies beside it. */
  readonly folder: string
  readonly contextTokens: number
}

/** Runs in the pool of threads. */
export default (input: ChatPromptInput): Promise<Prompt> =>
  chatPrompt(loadChatTokenizer(input.folder), input, input.contextTokens)
