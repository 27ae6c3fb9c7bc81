import { Effect } from "effect"
import type { ChatRequest } from "../../../core/ports/model.ts"
import type { CountRange, OwnCounter } from "../own-count.ts"
import type { ChatAnswer } from "./chat-answer.ts"
import type { OwnCount } from "./chat-usage.ts"
import { callableTools, hasMedia } from "./chat-wishes.ts"

/** The parts of a prompt, by how sure it is that the model reads them. */
interface PromptTexts {
  readonly messages: string
  readonly tools: string
  /** Templates may leave out reasoning of earlier turns; few servers put the schema in. */
  readonly maybe: string
}

/** Tokens that templates add: in all, to each message, and where there are tools. */
const templateTokens = 64
const messageTokens = 16
const toolsTokens = 256
/** What a likely prompt has of these. */
const likelyTokens = 4

/** Marks around answers and calls. */
const answerTokens = 16
const callTokens = 32

/** Text that was cut, or joined, in other places has some more or fewer tokens. */
const inexact = { input: 0.1, output: 0.1 }

export const promptTexts = (request: ChatRequest): PromptTexts => {
  const tools = callableTools(request)
  const { messages, responseFormat } = request
  return {
    messages: messages
      .flatMap(({ content, toolCalls = [] }) => [
        ...content.map((part) => (part.type === "text" ? part.text : "")),
        ...toolCalls.flatMap((call) => [call.name, call.arguments]),
      ])
      .join("\n"),
    tools: tools.length === 0 ? "" : JSON.stringify(tools),
    maybe: [
      ...messages.map(({ reasoning = "" }) => reasoning),
      responseFormat?.type === "json_schema" ? JSON.stringify(responseFormat.schema) : "",
    ].join("\n"),
  }
}

const inputRange = (
  request: ChatRequest,
  [messages = 0, tools = 0, maybe = 0]: readonly number[],
): CountRange => {
  const count = request.messages.length
  const likely = messages + tools + (count + 1) * likelyTokens
  const added = templateTokens + count * messageTokens + (tools > 0 ? toolsTokens : 0)
  return {
    least: Math.floor(messages * (1 - inexact.input)),
    likely,
    // JSON is written in other ways, with spaces or without
    most: Math.ceil((messages + maybe) * (1 + inexact.input) + tools * 2 + added),
  }
}

const outputRange = (
  counts: readonly number[],
  calls: number,
  answers: number,
  hidden: boolean,
): CountRange => {
  const likely = counts.reduce((sum, count) => sum + count, 0) + answers
  const slack = answers * answerTokens + calls * callTokens
  return {
    least: Math.max(0, Math.floor(likely * (1 - inexact.output)) - slack),
    likely,
    most: hidden ? Number.MAX_SAFE_INTEGER : Math.ceil(likely * (1 + inexact.output)) + slack,
  }
}

/**
 * Counts a call where it has ended or was left: what was asked, and what came. Undefined where the
 * thread pool has no time. `hidesReasoning`: the server charges tokens that it does not send.
 */
export const countCall = (
  counter: OwnCounter,
  request: ChatRequest,
  answer: ChatAnswer,
  hidesReasoning: boolean,
): Effect.Effect<OwnCount | undefined> => {
  const { texts, calls } = answer.written()
  const { messages, tools, maybe } = promptTexts(request)
  return Effect.map(counter.count([messages, tools, maybe, ...texts]), (counts) =>
    counts === undefined
      ? undefined
      : {
          input: hasMedia(request) ? undefined : inputRange(request, counts.slice(0, 3)),
          output: outputRange(counts.slice(3), calls, request.answers ?? 1, hidesReasoning),
        },
  )
}
