import { loadChatTokenizer } from "../tokenizer/chat-tokenizer.ts"
import { type RerankPromptRequest, type RerankPrompts, rerankPrompts } from "./rerank-prompt.ts"

export interface RerankPromptInput extends RerankPromptRequest {
  /** Of the built graph; the tokenizer lies beside it. */
  readonly folder: string
}

/** Runs in the pool of threads. */
export default ({ folder, ...request }: RerankPromptInput): Promise<RerankPrompts> =>
  rerankPrompts(loadChatTokenizer(folder), request)
