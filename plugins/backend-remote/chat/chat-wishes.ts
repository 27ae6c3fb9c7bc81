import { type ApiError, apiError } from "../../../core/errors.ts"
import type { ChatRequest, ResponseFormat } from "../../../core/ports/model.ts"
import type { Feature } from "../kinds.ts"
import type { Upstream } from "../upstream/upstream.ts"

/** What a request asks for that not every server keeps, and the field that asks for it. */
interface Wish {
  readonly feature: Feature
  readonly param: string
}

const ofFormat = (format: ResponseFormat): readonly Wish[] => {
  const param = format.param ?? "response_format"
  return [
    { feature: format.type, param },
    ...(format.closeOnLength ? [{ feature: "close_on_length" as const, param }] : []),
  ]
}

/** Tools that may be called: those that may not are not sent. */
export const callableTools = ({ tools = [], toolChoice, allowedTools }: ChatRequest) =>
  toolChoice === "none"
    ? []
    : tools.filter(({ name }) => allowedTools === undefined || allowedTools.includes(name))

export const hasMedia = ({ messages }: ChatRequest): boolean =>
  messages.some(({ content }) => content.some(({ type }) => type === "media"))

export const wishesOf = (request: ChatRequest): readonly Wish[] => {
  const { sampling, toolChoice, responseFormat } = request
  const same = (feature: Feature, isAsked: boolean): readonly Wish[] =>
    isAsked ? [{ feature, param: feature }] : []
  const tools = callableTools(request)
  return [
    ...same("seed", sampling.seed !== undefined),
    ...same("frequency_penalty", sampling.frequencyPenalty !== 0),
    ...same("presence_penalty", sampling.presencePenalty !== 0),
    ...same("top_k", sampling.topK !== undefined),
    ...same("min_p", sampling.minP !== undefined),
    ...same("repetition_penalty", sampling.repetitionPenalty !== undefined),
    ...same("logit_bias", (sampling.logitBias?.size ?? 0) > 0),
    ...same("logprobs", request.topLogprobs !== undefined),
    ...same("n", (request.answers ?? 1) > 1),
    ...same("tools", tools.length > 0),
    ...same("tool_choice", tools.length > 0 && toolChoice !== undefined && toolChoice !== "auto"),
    ...same("parallel_tool_calls", tools.length > 0 && request.parallelToolCalls === false),
    ...(responseFormat ? ofFormat(responseFormat) : []),
    ...(request.thinking === true
      ? [{ feature: "thinking" as const, param: "chat_template_kwargs.enable_thinking" }]
      : []),
    ...(hasMedia(request) ? [{ feature: "images" as const, param: "messages" }] : []),
  ]
}

/** The upstreams that keep all of the request, or the refusal of what none of them keeps. */
export const ableFor = (
  request: ChatRequest,
  upstreams: readonly Upstream[],
): readonly Upstream[] | ApiError => {
  const { toolChoice, tools = [], adapter } = request
  if (adapter)
    return apiError("unsupported_parameter", `This model has no adapter '${adapter.id}'.`, {
      param: "adapter",
    })
  if (typeof toolChoice === "object" && !tools.some(({ name }) => name === toolChoice.name))
    return apiError("invalid_request_error", `There is no tool '${toolChoice.name}'.`, {
      param: "tool_choice",
    })
  const wishes = wishesOf(request)
  const able = upstreams.filter(({ features }) =>
    wishes.every(({ feature }) => features.has(feature)),
  )
  if (able.length > 0 || upstreams.length === 0) return able
  const missing =
    wishes.find(({ feature }) => !upstreams.some(({ features }) => features.has(feature))) ??
    wishes.find(({ feature }) => !upstreams[0]?.features.has(feature))!
  const what = missing.feature === missing.param ? "" : ` (${missing.feature})`
  return apiError(
    "unsupported_parameter",
    `${missing.param}: the server behind this model does not keep it${what}.`,
    { param: missing.param },
  )
}
