import { loadChatTokenizer } from "../tokenizer/chat-tokenizer.ts"

export interface CountTokensInput {
  /** Folder of the built graph, in which the tokenizer is stored. */
  readonly folder: string
  readonly text: string
}

/** Runs in the thread pool. */
export default async ({ folder, text }: CountTokensInput): Promise<number> => {
  const { laterTokenizer } = loadChatTokenizer(folder)
  return (await laterTokenizer.encode(text, null, { addSpecialTokens: false })).getLength()
}
