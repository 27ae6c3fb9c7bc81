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
  truncate: "END" as const,
  ...(instruction && { instruction }),
})

/** Counts the tokens of a query, and says what embedding it takes. */
export const planQuery = (
  { catalogue, settings }: SearchDeps,
  { context }: Pick<Call<unknown>, "context">,
  question: Question,
): Effect.Effect<PlannedQuery, ApiError> =>
  Effect.gen(function* () {
    const entry = yield* catalogue.require("embed", settings.model)
    const model = yield* catalogue.open("embed", entry.id)
    const whole = yield* model.task.plan(requestOf(question), context)
    const alone = question.instruction
      ? yield* model.task.plan(requestOf({ query: question.query }), context)
      : whole
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
