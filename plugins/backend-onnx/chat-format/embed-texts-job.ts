import { join } from "node:path"
import { lowercase, sequenceNormalizer, Tokenizer } from "tokenizers"
import { readJson } from "../weights/json-file.ts"
import { type EmbedTexts, type EmbedTextsRequest, embedTexts } from "./embed-texts.ts"

export interface EmbedTextsInput {
  /** Folder of the model's files. */
  readonly folder: string
  readonly requests: readonly EmbedTextsRequest[]
}

// each thread of the pool has its own
const loaded = new Map<string, Tokenizer>()

/**
 * SigLIP was trained on texts in lower case; of its second version the published files leave that
 * to the caller.
 */
const lowerCase = (tokenizer: Tokenizer): void => {
  const own = tokenizer.getNormalizer()
  tokenizer.setNormalizer(sequenceNormalizer(own ? [lowercase(), own] : [lowercase()]))
}

/** The tokenizer of an encoder's folder. */
export const tokenizerIn = (folder: string): Tokenizer => {
  const known = loaded.get(folder)
  if (known) return known
  const tokenizer = Tokenizer.fromFile(join(folder, "tokenizer.json"))
  // the file may enable padding to a fixed length and silent truncation
  tokenizer.disablePadding()
  tokenizer.disableTruncation()
  const family: unknown = readJson(folder, "config.json").get("model_type")
  if (family === "siglip" || family === "siglip2") lowerCase(tokenizer)
  loaded.set(folder, tokenizer)
  return tokenizer
}

/** Runs in the thread pool. Returns one result for each request. */
export default async ({ folder, requests }: EmbedTextsInput): Promise<readonly EmbedTexts[]> => {
  const answers: EmbedTexts[] = []
  for (const request of requests) answers.push(await embedTexts(tokenizerIn(folder), request))
  return answers
}
