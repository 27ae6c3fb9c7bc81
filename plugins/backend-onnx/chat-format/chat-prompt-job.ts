import { loadChatTokenizer } from "../tokenizer/chat-tokenizer.ts"
import { chatPrompt, type Prompt, type PromptRequest } from "./chat-prompt.ts"

export interface ChatPromptInput extends PromptRequest {
  /** Folder of the built graph, in which the tokenizer is stored. */
  readonly folder: string
  readonly contextTokens: number
}

/** Runs in the thread pool. */
export default (input: ChatPromptInput): Promise<Prompt> =>
  chatPrompt(loadChatTokenizer(input.folder), input, input.contextTokens)
