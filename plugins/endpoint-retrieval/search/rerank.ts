import { Effect, Stream } from "effect"
import { type ApiError, apiError, type Call, type Usage, usageOf } from "../../../core/index.ts"
import type { SearchDeps } from "./deps.ts"
import type { Question } from "./query-vector.ts"

/** A cross-encoder that reads the query with each of the best candidates. */
export interface Reranker {
  readonly model: string
  readonly bound: Usage
  /** The largest number of texts. */
  readonly maxTexts: number
  /** Returns a score, 0 to 1, for each text. */
  score(texts: readonly string[]): Effect.Effect<readonly number[], ApiError>
}

/** The request names the model in `rerank`, not in `model`. */
const asRerank = (error: ApiError): ApiError =>
  error.code === "model_not_found"
    ? apiError(error.code, error.message, { param: "rerank", status: error.status })
    : error

/**
 * Checks that the model takes the query; its candidates are not known yet, so the bound is that of
 * as many whole windows.
 */
export const planRerank = (
  { catalogue, settings }: SearchDeps,
  { context }: Pick<Call<unknown>, "context">,
  { query, instruction }: Question,
  wanted: string | true,
  topK: number,
): Effect.Effect<Reranker, ApiError> =>
  Effect.gen(function* () {
    const name = wanted === true ? settings.rerankModel : wanted
    const { id } = yield* catalogue.require("rerank", name)
    const { task, contextTokens } = yield* catalogue.open("rerank", id)
    const maxTexts = Math.max(settings.rerankCandidates, topK)
    const requestOf = (documents: readonly string[]) => ({
      query,
      documents,
      ...(instruction && { instruction }),
    })
    yield* task.plan(requestOf(["."]), context)
    const score = (texts: readonly string[]) =>
      Effect.gen(function* () {
        if (texts.length === 0) return []
        const { run } = yield* task.plan(requestOf(texts), context)
        const scores: number[] = []
        for (const event of yield* Stream.runCollect(run)) scores[event.index] = event.score
        if (texts.some((_, index) => scores[index] === undefined))
          return yield* apiError("backend_error", "The model did not score every text.")
        return scores
      })
    return {
      model: id,
      bound: usageOf({ searchUnits: 1, inputTokens: maxTexts * contextTokens }),
      maxTexts,
      score,
    }
  }).pipe(Effect.mapError(asRerank))
