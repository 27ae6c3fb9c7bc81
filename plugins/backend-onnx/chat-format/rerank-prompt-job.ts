import { loadChatTokenizer } from "../tokenizer/chat-tokenizer.ts"
import type { ReadParts } from "./document-windows.ts"
import { type RerankPromptRequest, rerankPrompts } from "./rerank-prompt.ts"

export interface RerankPromptInput extends RerankPromptRequest {
  /** Folder of the built graph, in which the tokenizer is stored. */
  readonly folder: string
}

/** Runs in the thread pool. */
export default ({
  folder,
  ...request
}: RerankPromptInput): Promise<ReadParts<readonly Int32Array[]>> =>
  rerankPrompts(loadChatTokenizer(folder), request)
