import { type ChunkName, nameOf, type Passage } from "../search/passages.ts"
import { type Found, type SearchResult, type StageName, stageNames } from "../search/search.ts"
import type {
  Neighbour,
  ResultExplanation,
  RetrievalBody,
  RetrievalReply,
  RetrievalResult,
} from "./schema.ts"

const toNeighbour = (
  { include }: RetrievalBody,
  { index, text, page, start, end }: Passage,
): Neighbour => ({
  chunk_index: index,
  text,
  ...(page !== null && (include?.includes("page") ?? true) && { page }),
  ...((include?.includes("offsets") ?? true) && { start, end }),
})

/** Looks up score and rank in each of the lists that a chunk is on. */
const explainer = ({ stages }: SearchResult) => {
  const places = stageNames.map((stage) => {
    const ranked = (stages[stage] ?? []).map(
      (one, at) => [nameOf(one), { score: one.score, rank: at + 1 }] as const,
    )
    return [stage, new Map(ranked)] as const
  })
  return (chunk: ChunkName): ResultExplanation =>
    Object.fromEntries(
      places.flatMap(([stage, of]) => {
        const place = of.get(nameOf(chunk))
        return place ? [[stage, place]] : []
      }),
    )
}

const countsOf = ({ stages }: SearchResult): Partial<Record<StageName, number>> =>
  Object.fromEntries(Object.entries(stages).map(([stage, ranked]) => [stage, ranked.length]))

/** What is known of a search beside its result. */
export interface SearchFacts {
  readonly index: string
  readonly embeddingModel: string
  readonly space: { readonly id: string; readonly dimensions: number }
  readonly rerankModel: string | undefined
  readonly queryTokens: number
  readonly billedTokens: number
  readonly searchUnits: number
}

const explanationOf = (result: SearchResult, facts: SearchFacts) => ({
  index: facts.index,
  embedding_model: facts.embeddingModel,
  embedding_space: facts.space.id,
  dimensions: facts.space.dimensions,
  ...(facts.rerankModel !== undefined && { rerank_model: facts.rerankModel }),
  candidates: countsOf(result),
  ...(result.stages.text && { words: result.words }),
})

export const toReply = (
  body: RetrievalBody,
  result: SearchResult,
  facts: SearchFacts,
): RetrievalReply => {
  const explain = explainer(result)
  const toResult = (found: Found): RetrievalResult => {
    const { chunk_index, text, ...place } = toNeighbour(body, found)
    return {
      file_id: found.fileId,
      chunk_index,
      text,
      score: found.score,
      ...place,
      ...(body.neighbours && {
        neighbours: found.neighbours.map((one) => toNeighbour(body, one)),
      }),
      ...(body.explain && { explain: explain(found) }),
    }
  }
  return {
    object: "list",
    results: result.found.map(toResult),
    query_tokens: facts.queryTokens,
    billed_tokens: facts.billedTokens,
    ...(facts.rerankModel !== undefined && { search_units: facts.searchUnits }),
    ...(result.reindexing > 0 && { reindexing: result.reindexing }),
    ...(body.explain && { explain: explanationOf(result, facts) }),
  }
}
