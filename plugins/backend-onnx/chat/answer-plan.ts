import { Effect } from "effect"
import { type ApiError, apiError } from "../../../core/errors.ts"
import { randomText } from "../../../core/ids.ts"
import type { Json } from "../../../core/json.ts"
import type { ChatRequest, ToolDefinition } from "../../../core/ports/model.ts"
import type { AnswerForm } from "../answer/answer-parser.ts"
import { callableTools, documentSchema, type GuidedTool, grammarFor, mostCallsOf, type Wanted } from "../answer/grammar-for.ts"
import { heldSchema } from "../answer/held-schema.ts"
import { thinkClose } from "../answer/template-style.ts"
import { argumentsSchema } from "../answer/tool-schema.ts"
import type { GenerateRequest } from "../engine/llama-jobs.ts"
import type { Grammar } from "../grammar/constraint.ts"
import type { PromptForm } from "../tokenizer/chat-prompt.ts"

/** What the engine has to keep to, and how its text is read. */
export interface AnswerPlan {
  readonly grammar?: NonNullable<GenerateRequest["grammar"]>
  readonly form: AnswerForm
  /** Control tokens that are read as text. */
  readonly markers: NonNullable<GenerateRequest["markers"]>
}

const formatParam = "response_format.json_schema.schema"
const refusal = (message: string, param: string): ApiError => apiError("invalid_request_error", message, { param })

const held = (schema: Json, isStrict: boolean, param: string): Effect.Effect<Json, ApiError> => {
  const found = heldSchema(schema, isStrict)
  return "refused" in found ? Effect.fail(refusal(`${param}: ${found.refused}`, param)) : Effect.succeed(found.schema)
}

const guidedTool = ({ name, parameters, strict }: ToolDefinition, param: string): Effect.Effect<GuidedTool, ApiError> => {
  const schema = argumentsSchema(parameters)
  if (schema === undefined) return Effect.fail(refusal(`${param}: the arguments of a function are an object, so the schema's type must be object`, param))
  return Effect.map(held(schema, strict === true, param), (schema) => ({ name, schema }))
}

const document = (request: ChatRequest): Effect.Effect<Json | undefined, ApiError> => {
  const schema = documentSchema(request.responseFormat)
  if (schema === undefined || request.responseFormat?.type !== "json_schema") return Effect.succeed(schema)
  return held(schema, request.responseFormat.strict, formatParam)
}

/** What the answer has to be, with every schema checked; those of tools that can't be called, too. */
const wantedOf = Effect.fnUntraced(function* (request: ChatRequest, form: PromptForm) {
  const tools = request.tools ?? []
  const guided = yield* Effect.forEach(tools, (tool, index) => guidedTool(tool, `tools[${index}].function.parameters`))
  const schema = yield* document(request)
  const callable = new Set(callableTools(request).map(({ name }) => name))
  const isRequired = request.toolChoice === "required" || typeof request.toolChoice === "object"
  const wanted: Wanted = {
    syntax: form.syntax,
    markers: form.markers,
    ...(callable.size && { calls: { tools: guided.filter(({ name }) => callable.has(name)), isRequired, most: mostCallsOf(request) } }),
    forbidsCalls: tools.length > 0,
    ...(schema !== undefined && { document: schema }),
  }
  return wanted
})

/** `compile` fails with the 400 of a grammar that is too much. */
export const planAnswer = Effect.fnUntraced(function* (request: ChatRequest, prompt: PromptForm, compile: (grammar: Grammar, param: string) => Effect.Effect<void, ApiError>) {
  const wanted = yield* wantedOf(request, prompt)
  const ruled = grammarFor(wanted)
  if (ruled) yield* compile(ruled.grammar, wanted.calls ? "tools" : formatParam)
  const { calls } = wanted
  const isRead = prompt.reasoning !== "none" || ruled?.syntax !== undefined
  const plan: AnswerPlan = {
    markers: isRead ? prompt.markers : {},
    ...(ruled && {
      grammar: {
        grammar: ruled.grammar,
        closeOnLength: request.responseFormat?.closeOnLength === true,
        ...(prompt.reasoning === "begun" && { after: thinkClose }),
        ...(ruled.freeUntil !== undefined && { stopUntil: ruled.freeUntil }),
      },
    }),
    form: {
      reasoning: prompt.reasoning,
      ...(ruled?.syntax && calls && { calls: { syntax: ruled.syntax, tools: new Set(calls.tools.map(({ name }) => name)), only: calls.isRequired } }),
      callId: () => `call_${randomText()}`,
    },
  }
  return plan
})
