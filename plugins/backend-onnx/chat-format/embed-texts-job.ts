import type { Tokenizer } from "tokenizers"
import { loadEncoderTokenizer } from "../tokenizer/encoder-tokenizer.ts"
import { type EmbedTexts, type EmbedTextsRequest, embedTexts } from "./embed-texts.ts"

export interface EmbedTextsInput {
  /** Folder of the model's files. */
  readonly folder: string
  readonly requests: readonly EmbedTextsRequest[]
}

// each thread of the pool has its own
const loaded = new Map<string, Tokenizer>()

/** The tokenizer of an encoder's folder. */
export const tokenizerIn = (folder: string): Tokenizer => {
  const known = loaded.get(folder)
  if (known) return known
  const tokenizer = loadEncoderTokenizer(folder)
  loaded.set(folder, tokenizer)
  return tokenizer
}

/** Runs in the thread pool. Returns one result for each request. */
export default async ({ folder, requests }: EmbedTextsInput): Promise<readonly EmbedTexts[]> => {
  const answers: EmbedTexts[] = []
  for (const request of requests) answers.push(await embedTexts(tokenizerIn(folder), request))
  return answers
}
