import { Effect } from "effect"
import { type ApiError, apiError } from "../../../core/errors.ts"
import type { ChatRequest } from "../../../core/ports/model.ts"
import { randomText } from "../../../core/services/ids.ts"
import type { Log } from "../../../core/services/log.ts"
import type { Workers } from "../../../core/services/workers.ts"
import type { PromptForm } from "../chat-format/chat-prompt.ts"
import { inPool } from "../chat-format/pool.ts"
import { thinkClose } from "../chat-format/template-style.ts"
import type { GenerateRequest } from "../generation/decoder-jobs.ts"
import { asApiError } from "../grammar/compile-in-pool.ts"
import type { SharedVocabulary } from "../grammar/grammar-vocabulary.ts"
import { mostSchemaBytes } from "../grammar/schema-limits.ts"
import type { AnswerGrammarInput, AnswerGrammarOutput } from "../output/answer-grammar-job.ts"
import type { AnswerForm } from "../output/answer-parser.ts"
import { type ConstrainedAnswer, callableTools } from "../output/grammar-for.ts"

/** The grammar that the engine has to follow, and how its text is parsed. */
export interface AnswerPlan {
  readonly grammar?: NonNullable<GenerateRequest["grammar"]>
  readonly form: AnswerForm
  /** Ids of control tokens, by text, that count as text of the answer. */
  readonly markers: NonNullable<GenerateRequest["markers"]>
}

interface PlanDeps {
  readonly workers: Workers
  readonly log: Log
  readonly engine: { readonly info: { readonly grammarVocabulary: SharedVocabulary } }
}

const tooLarge = ({
  tools = [],
  responseFormat,
}: Pick<AnswerGrammarInput, "tools" | "responseFormat">): ApiError | undefined => {
  const size = Buffer.byteLength(JSON.stringify([tools, responseFormat ?? null]))
  const param = tools.length ? "tools" : (responseFormat?.param ?? "response_format")
  return size > mostSchemaBytes
    ? apiError(
        "invalid_request_error",
        `Tools and schemas have ${size} bytes; at most ${mostSchemaBytes} are accepted.`,
        { param },
      )
    : undefined
}

const refusalOf = ({
  refused,
  isBroken,
  param,
}: Extract<AnswerGrammarOutput, { readonly refused: string }>): ApiError =>
  apiError(isBroken ? "invalid_request_error" : "unsupported_parameter", `${param}: ${refused}.`, {
    param,
  })

/**
 * Checks tools and response format in the pool and compiles their grammar. Fails with a 400 that
 * names what can't be guaranteed.
 */
const compileConstraint = Effect.fnUntraced(function* (
  { workers, log, engine }: PlanDeps,
  request: ChatRequest,
  { syntax, markers }: PromptForm,
) {
  const { tools, toolChoice, allowedTools, parallelToolCalls, responseFormat } = request
  if (!tools?.length && !responseFormat) return undefined
  const input: AnswerGrammarInput = {
    form: { syntax, markers },
    vocabulary: engine.info.grammarVocabulary,
    ...(tools && { tools }),
    ...(toolChoice !== undefined && { toolChoice }),
    ...(allowedTools && { allowedTools }),
    ...(parallelToolCalls !== undefined && { parallelToolCalls }),
    ...(responseFormat && { responseFormat }),
  }
  const refused = tooLarge(input)
  if (refused) return yield* refused
  const found = yield* inPool<AnswerGrammarInput, AnswerGrammarOutput>(
    workers,
    log,
    "../output/answer-grammar-job",
    input,
    { isLimited: true },
  )
  if ("refused" in found) return yield* refusalOf(found)
  return "failed" in found ? yield* asApiError(found.failed, found.param) : found.constrained
})

const grammarOf = (
  request: ChatRequest,
  { grammar, freeUntil }: ConstrainedAnswer,
  reasoning: PromptForm["reasoning"],
): NonNullable<GenerateRequest["grammar"]> => ({
  grammar,
  closeOnLength: request.responseFormat?.closeOnLength === true,
  ...(reasoning === "begun" && { after: thinkClose }),
  ...(freeUntil !== undefined && { stopUntil: freeUntil }),
})

const formOf = (
  request: ChatRequest,
  constrained: ConstrainedAnswer | undefined,
  reasoning: PromptForm["reasoning"],
): AnswerForm => ({
  reasoning,
  ...(constrained?.syntax && {
    calls: {
      syntax: constrained.syntax,
      tools: new Set(callableTools(request).map(({ name }) => name)),
      only: request.toolChoice === "required" || typeof request.toolChoice === "object",
    },
  }),
  callId: () => `call_${randomText()}`,
})

export const planAnswer = Effect.fnUntraced(function* (
  deps: PlanDeps,
  request: ChatRequest,
  prompt: PromptForm,
) {
  const constrained = yield* compileConstraint(deps, request, prompt)
  const plan: AnswerPlan = {
    ...(constrained && { grammar: grammarOf(request, constrained, prompt.reasoning) }),
    form: formOf(request, constrained, prompt.reasoning),
    markers: prompt.reasoning !== "none" || constrained?.syntax ? prompt.markers : {},
  }
  return plan
})
