import { Effect } from "effect"
import { type ApiError, apiError } from "../../core/errors.ts"
import type { ModelEntry } from "../../core/services/catalogue.ts"
import type { ChatBody } from "./request-schema.ts"

/** How many tokens the answer may have: what the request asks for, up to the model's limit, or the model's default. */
export const maxTokensOf = (body: ChatBody, entry: ModelEntry): Effect.Effect<number, ApiError> => {
  const asked = body.max_tokens ?? body.max_completion_tokens
  if (asked == null) return Effect.succeed(Math.min(entry.defaultMaxTokens, entry.maxOutputTokens))
  if (asked <= entry.maxOutputTokens) return Effect.succeed(asked)
  const param = body.max_tokens == null ? "max_completion_tokens" : "max_tokens"
  return Effect.fail(
    apiError(
      "invalid_request_error",
      `${param}: '${entry.id}' answers with at most ${entry.maxOutputTokens} tokens`,
      { param },
    ),
  )
}
