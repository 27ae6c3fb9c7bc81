import { Effect, Stream } from "effect"
import {
  type ApiError,
  apiError,
  type ChatEvent,
  type ChatRequest,
  type ModelContext,
  type ModelId,
  type Task,
  usageOf,
} from "rakit/core"
import { countTokens, stepsOf, wordsOf } from "./babble.ts"

const promptOf = ({ messages }: ChatRequest): string =>
  messages
    .map(({ role, content }) =>
      [role, ...content.map((part) => (part.type === "text" ? part.text : ""))].join(" "),
    )
    .join("\n")

/** What this model can't keep is refused, so that nobody takes its answer for one that keeps it. */
const refusalOf = (request: ChatRequest): ApiError | undefined => {
  const hasMedia = request.messages.some(({ content }) =>
    content.some((part) => part.type === "media"),
  )
  if (hasMedia)
    return apiError("unsupported_parameter", "This model reads text only.", { param: "messages" })
  const beyond = { tools: request.tools?.length, response_format: request.responseFormat }
  const param = Object.entries(beyond).find(([, value]) => value)?.[0]
  return param === undefined
    ? undefined
    : apiError("unsupported_parameter", `This model does not know ${param}.`, { param })
}

/** The steps of all answers, one after the other; their tokens are counted together. */
function* stepsOfAll(request: ChatRequest, prompt: string, variant: string | number) {
  let written = 0
  for (let answer = 0; answer < (request.answers ?? 1); answer++) {
    let own = 0
    const words = wordsOf(`${answer ? `${variant}-${answer}` : variant} ${prompt}`)
    for (const { outputTokens, events } of stepsOf(words, request)) {
      own = outputTokens
      yield {
        outputTokens: written + own,
        events: answer ? events.map((event): ChatEvent => ({ ...event, answer })) : events,
      }
    }
    written += own
  }
}

/**
 * The chat task: `plan` checks and says what may be used at worst, its `run` does the work and
 * meters it.
 */
export const makeChatModel = (
  id: ModelId,
  contextTokens: number,
): Task<ChatRequest, ChatEvent> => ({
  plan: (request: ChatRequest, context: ModelContext) =>
    Effect.gen(function* () {
      const refusal = refusalOf(request)
      if (refusal) return yield* Effect.fail(refusal)
      const prompt = promptOf(request)
      const inputTokens = countTokens(prompt)
      const maxTokens = Math.min(request.maxTokens, contextTokens - inputTokens)
      if (maxTokens < 1)
        return yield* Effect.fail(
          apiError(
            "context_length_exceeded",
            `The messages have ${inputTokens} tokens; the window of '${id}' is ${contextTokens}.`,
            { param: "messages" },
          ),
        )
      const { temperature, seed } = request.sampling
      const variant = seed ?? (temperature === 0 ? 0 : context.callId)
      const meter = (outputTokens: number) =>
        Effect.sync(() => context.meter(id, usageOf({ inputTokens, outputTokens })))
      const run = Stream.suspend(() =>
        Stream.fromIterable(stepsOfAll({ ...request, maxTokens }, prompt, variant)),
      ).pipe(
        // a step at a time, so that a caller who leaves ends the work
        Stream.rechunk(1),
        Stream.tap(({ outputTokens }) => meter(outputTokens)),
        Stream.flatMap(({ events }) => Stream.fromIterable(events)),
      )
      const outputTokens = (request.answers ?? 1) * maxTokens
      return { bound: usageOf({ inputTokens, outputTokens }), run }
    }),
})
