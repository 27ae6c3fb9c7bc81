import { secondTypeIn } from "../tokenizer/encoder-tokenizer.ts"
import type { ReadParts } from "./document-windows.ts"
import { tokenizerIn } from "./embed-texts-job.ts"
import { type RerankPairsRequest, rerankPairs, type TokenPair } from "./rerank-pairs.ts"

export interface RerankPairsInput extends Omit<RerankPairsRequest, "secondType"> {
  /** Folder of the model's files. */
  readonly folder: string
}

// each thread of the pool has its own, as it has its tokenizers
const secondTypes = new Map<string, 0 | 1 | undefined>()

const secondTypeOf = (folder: string): 0 | 1 | undefined => {
  if (!secondTypes.has(folder)) secondTypes.set(folder, secondTypeIn(folder))
  return secondTypes.get(folder)
}

/** Runs in the thread pool. */
export default ({
  folder,
  ...request
}: RerankPairsInput): Promise<ReadParts<readonly TokenPair[]>> =>
  rerankPairs(tokenizerIn(folder), { ...request, secondType: secondTypeOf(folder) })
