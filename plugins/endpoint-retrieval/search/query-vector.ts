import { Effect, Stream } from "effect"
import { type ApiError, apiError, type Call, type Usage } from "../../../core/index.ts"
import type { VectorSpace } from "../vectors/space.ts"
import { checkVectors, spaceOf } from "../vectors/space.ts"
import type { SearchDeps } from "./deps.ts"

export interface Question {
  readonly query: string
  readonly instruction?: string | null
}

/** A query before it is embedded. */
export interface PlannedQuery {
  readonly model: string
  readonly bound: Usage
  /** Tokens of the query without its instruction. */
  readonly queryTokens: number
  readonly embed: Effect.Effect<
    { readonly vector: Float32Array; readonly space: VectorSpace },
    ApiError
  >
}

const requestOf = ({ query, instruction }: Question) => ({
  items: [{ type: "text" as const, text: query }],
  truncate: "NONE" as const,
  ...(instruction && { instruction }),
})

/** The request names the text `query`, and has no `truncate`. */
const asQuery =
  (contextTokens: number) =>
  (error: ApiError): ApiError =>
    error.code === "text_too_long"
      ? apiError(
          error.code,
          `The query with its instruction is longer than the ${contextTokens} tokens that the embedding model takes.`,
          { param: "query" },
        )
      : error

/** Counts the tokens of a query, and says what embedding it takes. */
export const planQuery = (
  { catalogue, settings }: SearchDeps,
  { context }: Pick<Call<unknown>, "context">,
  question: Question,
): Effect.Effect<PlannedQuery, ApiError> =>
  Effect.gen(function* () {
    const entry = yield* catalogue.require("embed", settings.model)
    const model = yield* catalogue.open("embed", entry.id)
    const planOf = (asked: Question) =>
      Effect.mapError(model.task.plan(requestOf(asked), context), asQuery(model.contextTokens))
    const whole = yield* planOf(question)
    const alone = question.instruction ? yield* planOf({ query: question.query }) : whole
    const embed = Effect.gen(function* () {
      const [event] = yield* Stream.runCollect(whole.run)
      if (!event) return yield* apiError("backend_error", "The model did not embed the query.")
      const { vector } = event
      const space = spaceOf(entry, model, vector.length)
      yield* checkVectors(space, [vector])
      return { vector, space }
    })
    return { model: entry.id, bound: whole.bound, queryTokens: alone.bound.inputTokens, embed }
  })
