import { Effect } from "effect"
import { type ApiError, apiError } from "../../core/errors.ts"
import type { LoadedModel } from "../../core/ports/model.ts"
import type { ModelEntry, ServedModel } from "../../core/services/model-entry.ts"
import type { ChatBody } from "./request-schema.ts"
import { formatsOf } from "./structured-output.ts"

const askedTokens = ({ max_tokens, max_completion_tokens }: ChatBody) => ({
  tokens: max_tokens ?? max_completion_tokens ?? undefined,
  param: max_tokens == null ? "max_completion_tokens" : "max_tokens",
})

/** Refuses more tokens than the config offers, also while the model is loading. */
export const checkMaxTokens = (
  body: ChatBody,
  { id, maxOutputTokens }: ModelEntry,
): Effect.Effect<void, ApiError> => {
  const { tokens = 0, param } = askedTokens(body)
  if (tokens <= maxOutputTokens) return Effect.void
  const message = `${param}: '${id}' answers with at most ${maxOutputTokens} tokens`
  return Effect.fail(apiError("invalid_request_error", message, { param }))
}

/**
 * Returns the answer's token limit: what the request asks for, or the model's default. Fails where
 * the model behind the entry can't give what config offers.
 */
export const maxTokensOf = (
  body: ChatBody,
  entry: ModelEntry,
  served: ServedModel,
): Effect.Effect<number, ApiError> => {
  const { tokens, param } = askedTokens(body)
  if (tokens === undefined)
    return Effect.succeed(Math.min(entry.defaultMaxTokens, served.maxOutputTokens))
  if (tokens <= served.maxOutputTokens) return Effect.succeed(tokens)
  const message = `${param}: the window of '${entry.id}' is ${served.contextTokens} tokens here, so its answers have at most ${served.maxOutputTokens}`
  return Effect.fail(apiError("context_length_exceeded", message, { param }))
}

/** What a request may ask for that not every model can do. */
const wishes: readonly {
  readonly capability: string
  readonly what: string
  /** The field that asks for it. */
  askedBy(body: ChatBody): string | undefined
}[] = [
  {
    capability: "thinking",
    what: "can't think before it answers",
    askedBy: ({ chat_template_kwargs }) =>
      chat_template_kwargs?.enable_thinking ? "chat_template_kwargs.enable_thinking" : undefined,
  },
  {
    capability: "tool_use",
    what: "can't call tools",
    askedBy: ({ tools, tool_choice }) =>
      tools?.length && tool_choice !== "none" ? "tools" : undefined,
  },
  {
    capability: "structured_output",
    what: "can't keep the form of an answer",
    askedBy: (body) =>
      body.response_format && body.response_format.type !== "text"
        ? "response_format"
        : formatsOf(body)[0]?.param,
  },
]

/** Refuses by name what the model behind the entry can't do; nothing is dropped silently. */
export const checkCapabilities = (
  body: ChatBody,
  { id }: ModelEntry,
  { capabilities }: LoadedModel,
): Effect.Effect<void, ApiError> => {
  for (const { capability, what, askedBy } of wishes) {
    const param = capabilities.includes(capability) ? undefined : askedBy(body)
    if (param !== undefined)
      return Effect.fail(
        apiError("unsupported_parameter", `${param}: the model '${id}' ${what}.`, { param }),
      )
  }
  return Effect.void
}
