import { Effect } from "effect"
import { apiError } from "../../../core/errors.ts"
import type { ChatRequest, FinishReason, ResponseFormat } from "../../../core/ports/model.ts"
import type { Log } from "../../../core/services/log.ts"
import type { Workers } from "../../../core/services/workers.ts"
import { failure, type UpstreamFailure } from "../upstream/failure.ts"
import { callableTools } from "./chat-wishes.ts"
import type { BrokenForm, FormCheck } from "./form-check-job.ts"

/** One of the answers, when it has ended. */
export interface WrittenAnswer {
  readonly text: string
  readonly calls: readonly { readonly name: string; readonly arguments: string }[]
  readonly finish: FinishReason | undefined
  /** It was closed before it was cut. */
  readonly isWhole: boolean | undefined
}

const mismatch = (what: string, at = ""): UpstreamFailure =>
  failure("mismatch", what, {
    refusal: apiError("backend_error", `The model's server broke the answer's form: ${what}${at}.`),
  })

const parsed = (text: string): { readonly value: unknown } | undefined => {
  try {
    return { value: JSON.parse(text) }
  } catch {
    return undefined
  }
}

const keepsFormat = (format: ResponseFormat, text: string): boolean => {
  switch (format.type) {
    case "choice":
      return format.choices.includes(text)
    case "json_schema":
      return parsed(text) !== undefined
    case "json_object": {
      const value = parsed(text)?.value
      return typeof value === "object" && value !== null && !Array.isArray(value)
    }
    default:
      return true
  }
}

/** An answer that was cut keeps no form. */
const isCut = ({ finish, isWhole }: WrittenAnswer) =>
  (finish === "length" && isWhole !== true) || finish === "content_filter"

/** Throws an `UpstreamFailure` where an answer has plainly not the form that was asked for. */
export const checkForm = (request: ChatRequest, answer: WrittenAnswer): void => {
  if (isCut(answer)) return
  const { text, calls } = answer
  const { toolChoice, responseFormat } = request
  const names = callableTools(request).map(({ name }) => name)
  const named = typeof toolChoice === "object" ? toolChoice.name : undefined
  for (const call of calls) {
    if (!names.includes(call.name)) throw mismatch("it called a tool that it was not given")
    if (named !== undefined && call.name !== named)
      throw mismatch("it called another tool than it had to")
    if (!parsed(call.arguments)) throw mismatch("the arguments of a call are not JSON")
  }
  const isForced = toolChoice === "required" || named !== undefined
  if (isForced && names.length > 0 && calls.length === 0)
    throw mismatch("it called no tool, though it had to")
  if (calls.length > 0 || !responseFormat) return
  if (!keepsFormat(responseFormat, text))
    throw mismatch(`it is not the ${responseFormat.type} of ${paramOf(responseFormat)}`)
}

/** Whether an answer can have a wrong form: then it may be held back. */
export const asksForForm = (request: ChatRequest): boolean => {
  const { responseFormat, toolChoice } = request
  const tools = callableTools(request)
  const isForced = toolChoice === "required" || typeof toolChoice === "object"
  return (
    responseFormat !== undefined ||
    (tools.length > 0 && (isForced || tools.some(({ strict }) => strict === true)))
  )
}

const paramOf = ({ param = "response_format" }: ResponseFormat) => param

/** What takes longer to check; the schemas of customers that did not ask for `strict` are wishes. */
export const formChecks = (
  request: ChatRequest,
  answers: readonly WrittenAnswer[],
): readonly FormCheck[] => {
  const { responseFormat: format, tools = [] } = request
  return answers
    .filter((answer) => !isCut(answer))
    .flatMap(({ text, calls }): readonly FormCheck[] => {
      const ofCalls = calls.flatMap((call) => {
        const tool = tools.find(({ name }) => name === call.name)
        return tool?.strict && tool.parameters !== undefined
          ? [{ param: "tools", text: call.arguments, schema: tool.parameters }]
          : []
      })
      if (calls.length > 0 || !format) return ofCalls
      const asked = { param: paramOf(format), text }
      if (format.type === "json_schema" && format.strict)
        return [{ ...asked, schema: format.schema }]
      return format.type === "regex" ? [{ ...asked, pattern: format.pattern }] : []
    })
}

const jobModule = new URL(
  import.meta.url.endsWith(".ts") ? "./form-check-job.ts" : "./form-check-job.js",
  import.meta.url,
)
/** A schema or a pattern of a customer may take for ever. */
const limitMs = 1_000

/** Fails where an answer breaks a form. What can't be checked, or takes too long, has passed. */
export const runFormChecks = (
  checks: readonly FormCheck[],
  { workers, log, model }: { readonly workers: Workers; readonly log: Log; readonly model: string },
): Effect.Effect<void, UpstreamFailure> =>
  checks.length === 0
    ? Effect.void
    : workers.run<readonly FormCheck[], BrokenForm | undefined>(jobModule, checks, limitMs).pipe(
        Effect.catch(({ message }) => {
          log.debug("upstream.form_unchecked", "an answer's form can't be checked", {
            model,
            reason: message,
          })
          return Effect.succeed(undefined)
        }),
        Effect.flatMap((broken) =>
          broken === undefined
            ? Effect.void
            : Effect.fail(
                mismatch(`it breaks the ${broken.keyword} of ${broken.param}`, ` at ${broken.at}`),
              ),
        ),
      )
