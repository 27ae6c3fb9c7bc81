import { loadChatTokenizer } from "../tokenizer/chat-tokenizer.ts"
import { type RerankPromptRequest, type RerankPrompts, rerankPrompts } from "./rerank-prompt.ts"

export interface RerankPromptInput extends RerankPromptRequest {
  /** Folder of the built graph, in which the tokenizer is stored. */
  readonly folder: string
}

/** Runs in the thread pool. */
export default ({ folder, ...request }: RerankPromptInput): Promise<RerankPrompts> =>
  rerankPrompts(loadChatTokenizer(folder), request)
