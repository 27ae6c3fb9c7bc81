import type { ReadParts } from "./document-windows.ts"
import { tokenizerIn } from "./embed-texts-job.ts"
import { type RerankPairsRequest, rerankPairs, type TokenPair } from "./rerank-pairs.ts"

export interface RerankPairsInput extends RerankPairsRequest {
  /** Folder of the model's files. */
  readonly folder: string
}

/** Runs in the thread pool. */
export default ({
  folder,
  ...request
}: RerankPairsInput): Promise<ReadParts<readonly TokenPair[]>> =>
  rerankPairs(tokenizerIn(folder), request)
