import { Effect } from "effect"
import type { ApiError, ModelContext, PortError, Tenant } from "../../../core/index.ts"
import type { VectorSpace } from "../vectors/space.ts"
import type { SearchDeps } from "./deps.ts"
import { type CountedWord, searchWords } from "./full-text.ts"
import { fuse, type Ranked, strongOf } from "./fusion.ts"
import { type ChunkName, nameOf, type Passage, readPassages } from "./passages.ts"
import type { Reranker } from "./rerank.ts"
import { countReindexing, type Restriction, rangesOf } from "./scope.ts"

export interface SearchRequest {
  readonly tenant: Tenant
  readonly space: VectorSpace
  readonly query: string
  readonly vector: Float32Array
  /** The largest number of results. */
  readonly limit: number
  readonly restriction: Restriction
  /** What the vectors' order counts beside that of the words, 0 to 1; absent: words are not asked. */
  readonly vectorWeight?: number | undefined
  readonly reranker?: Reranker | undefined
  /** The number of chunks to read on each side of a result. */
  readonly neighbours: number
  /** Called with the ms that the search itself took, without reranking. */
  readonly time: ModelContext["time"]
}

export const stageNames = ["vector", "text", "fusion", "rerank"] as const
/** A list on the way to the results, best first. */
export type StageName = (typeof stageNames)[number]
export type Stages = Readonly<Partial<Record<StageName, readonly Ranked[]>>>

/** A passage with the score of the last stage, 0 to 1. */
export interface Found extends Passage {
  readonly score: number
  /** In their order in the document. */
  readonly neighbours: readonly Passage[]
}

export interface SearchResult {
  /** Best first. */
  readonly found: readonly Found[]
  readonly stages: Stages
  /** Words of the query that some chunk has. */
  readonly words: readonly CountedWord[]
  /** Documents that can't be found now, as they are in another space. */
  readonly reindexing: number
}

/** How far the lists of vectors and words are read before they are fused. */
const fusedDepth = 100

/** The lists by vectors and words, and the one of both. */
const candidatesOf = (deps: SearchDeps, request: SearchRequest) =>
  Effect.gen(function* () {
    const { tenant, space, vector, restriction, limit, vectorWeight, reranker } = request
    const isHybrid = vectorWeight !== undefined
    const depth = Math.max(limit, reranker?.maxTexts ?? 0, isHybrid ? fusedDepth : 0)
    const byVector = Effect.gen(function* () {
      if (vectorWeight === 0) return []
      const ranges = yield* rangesOf(deps, tenant, space, restriction)
      if (ranges?.length === 0) return []
      return yield* deps.vectors.search({
        tenant,
        space,
        vector,
        limit: depth,
        ...(ranges && { ranges }),
      })
    })
    const byWords =
      isHybrid && vectorWeight < 1
        ? searchWords(deps, tenant, space, { query: request.query, limit: depth, restriction })
        : Effect.succeed({ ranked: [], words: [] })
    const [found, text] = yield* Effect.all([byVector, byWords], { concurrency: 2 })
    if (!isHybrid) return { stages: { vector: found }, best: found, words: [] }
    // without vectors the list by words is the whole result
    const byWordsFused = vectorWeight === 0 ? text.ranked : strongOf(text.ranked)
    const fusion = fuse([
      { ranked: found, weight: vectorWeight },
      { ranked: byWordsFused, weight: 1 - vectorWeight },
    ])
    return { stages: { vector: found, text: text.ranked, fusion }, best: fusion, words: text.words }
  })

const sidesOf = (chunks: readonly ChunkName[], neighbours: number): readonly ChunkName[] =>
  chunks.flatMap(({ document, index }) =>
    Array.from({ length: 2 * neighbours + 1 }, (_, at) => ({
      document,
      index: index - neighbours + at,
    })).filter((one) => one.index >= 0 && one.index !== index),
  )

const within0And1 = (score: number): number => Math.min(1, Math.max(0, score))

/** The best chunks that are still there, with their passages. */
const results = (deps: SearchDeps, request: SearchRequest, best: readonly Ranked[]) =>
  Effect.gen(function* () {
    const { tenant, space, limit, reranker, neighbours } = request
    const candidates = best.slice(0, reranker?.maxTexts ?? limit)
    const read = (chunks: readonly ChunkName[]) =>
      chunks.length === 0
        ? Effect.succeed<ReadonlyMap<string, Passage>>(new Map())
        : readPassages(deps, tenant, space, chunks)
    const passages = yield* read(candidates)
    const there = candidates.filter((one) => passages.has(nameOf(one)))
    const textOf = (one: ChunkName) => passages.get(nameOf(one))!.text
    const scores = reranker && (yield* reranker.score(there.map(textOf)))
    const rerank =
      scores &&
      there.map((one, at) => ({ ...one, score: scores[at]! })).sort((a, b) => b.score - a.score)
    const top = (rerank ?? there).slice(0, limit)
    const around = yield* read(sidesOf(top, neighbours))
    const found = top.map((one) => ({
      ...passages.get(nameOf(one))!,
      score: within0And1(one.score),
      neighbours: sidesOf([one], neighbours).flatMap((side) => around.get(nameOf(side)) ?? []),
    }))
    return { found, ...(rerank && { rerank }) }
  })

export const search = (
  deps: SearchDeps,
  request: SearchRequest,
): Effect.Effect<SearchResult, ApiError | PortError> =>
  Effect.gen(function* () {
    const startedMs = deps.clock.monotonicMs()
    const [{ stages, best, words }, reindexing] = yield* Effect.all(
      [candidatesOf(deps, request), countReindexing(deps, request.tenant, request.space)],
      { concurrency: 2 },
    )
    request.time("search", deps.clock.monotonicMs() - startedMs)
    const { found, rerank } = yield* results(deps, request, best)
    return { found, stages: { ...stages, ...(rerank && { rerank }) }, words, reindexing }
  })
