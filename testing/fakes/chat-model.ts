import { Effect } from "effect"
import { apiError } from "../../core/errors.ts"
import type {
  ChatEvent,
  ChatRequest,
  FinishReason,
  LoadedModel,
  ModelContext,
} from "../../core/ports/model.ts"
import type { ModelEntry } from "../../core/services/model-entry.ts"
import { usageOf } from "../../core/usage.ts"
import { type FakeModel, fakeEntry } from "./catalogue.ts"
import {
  type FakePace,
  type FakeRun,
  type FakeStep,
  fakeTokens,
  refused,
  runSteps,
} from "./model-run.ts"
import { speak, textOf } from "./model-speech.ts"

export interface FakeChatScript extends FakePace {
  readonly entry?: Partial<ModelEntry>
  /**
   * What it says, one token per text. By default what `speak` makes of the request: the last
   * message again, or calls of its tools.
   */
  readonly says?: readonly string[] | ((request: ChatRequest) => readonly string[])
  /** Events before the text (`reasoning`, `toolCall`), one token each. */
  readonly first?: readonly ChatEvent[]
  /** How it ends when neither `maxTokens` nor a stop string ends it; `stop` by default. */
  readonly ends?: FinishReason
}

export interface FakeChatModel extends FakeModel<"chat"> {
  readonly runs: readonly FakeRun<ChatRequest>[]
}

const promptTokens = (request: ChatRequest): number =>
  request.messages.reduce((sum, message) => sum + 1 + fakeTokens(textOf(message)).length, 0)

/** Returns the first offset where a stop string begins, or the length of the text. */
const stopAt = (text: string, stop: readonly string[]): number =>
  Math.min(text.length, ...stop.map((s) => text.indexOf(s)).filter((at) => at >= 0))

const speech = (
  script: FakeChatScript,
  request: ChatRequest,
): { readonly events: readonly ChatEvent[]; readonly ends: FinishReason } => {
  const own = script.says === undefined && script.first === undefined ? speak(request) : undefined
  const says =
    typeof script.says === "function"
      ? script.says(request)
      : (script.says ?? own?.says ?? fakeTokens(textOf(request.messages.at(-1))))
  const whole = says.join("")
  const end = stopAt(whole, request.stop)
  const events: ChatEvent[] = [...(script.first ?? own?.first ?? [])]
  let at = 0
  for (const piece of says) {
    const text = piece.slice(0, Math.max(0, end - at))
    if (text !== "") events.push({ type: "text", text })
    at += piece.length
  }
  if (events.length > request.maxTokens)
    return { events: events.slice(0, request.maxTokens), ends: "length" }
  return { events, ends: end < whole.length ? "stop" : (script.ends ?? own?.ends ?? "stop") }
}

const stepsOf = (
  { events, ends }: ReturnType<typeof speech>,
  inputTokens: number,
): readonly FakeStep<ChatEvent>[] => {
  let reasoningTokens = 0
  const usage = (outputTokens: number) => usageOf({ inputTokens, outputTokens, reasoningTokens })
  const tokens = events.map((event, index) => {
    if (event.type === "reasoning") reasoningTokens++
    return { events: [event], usage: usage(index + 1) }
  })
  return [
    { events: [], usage: usageOf({ inputTokens, outputTokens: 0, reasoningTokens: 0 }) },
    ...tokens,
    { events: [{ type: "finish", reason: ends }], usage: usage(events.length) },
  ]
}

/** Interleaves the events of several answers, which are equal; one token of each in turn. */
const answersOf = (
  steps: readonly FakeStep<ChatEvent>[],
  answers: number,
): readonly FakeStep<ChatEvent>[] => {
  if (answers === 1) return steps
  let before = steps[0]!.usage
  return steps.flatMap(({ events, usage }, step) => {
    const more = {
      outputTokens: usage.outputTokens - (steps[step - 1]?.usage.outputTokens ?? 0),
      reasoningTokens: usage.reasoningTokens - (steps[step - 1]?.usage.reasoningTokens ?? 0),
    }
    return Array.from({ length: step === 0 ? 1 : answers }, (_, answer) => {
      before = {
        ...before,
        outputTokens: before.outputTokens + more.outputTokens,
        reasoningTokens: before.reasoningTokens + more.reasoningTokens,
      }
      return {
        usage: before,
        events: answer ? events.map((event) => ({ ...event, answer })) : events,
      }
    })
  })
}

/**
 * A chat model that says what its script says. Its steps: the prompt, then one for each token, then
 * the end.
 */
export const fakeChatModel = (script: FakeChatScript = {}): FakeChatModel => {
  const entry = fakeEntry("chat", script.entry)
  const runs: FakeRun<ChatRequest>[] = []
  const plan: LoadedModel<"chat">["task"]["plan"] = Effect.fnUntraced(function* (
    request: ChatRequest,
    context: ModelContext,
  ) {
    yield* refused(script)
    const inputTokens = promptTokens(request)
    const room = entry.contextTokens - inputTokens
    if (room < 1)
      return yield* apiError(
        "context_length_exceeded",
        `The prompt has ${inputTokens} tokens; the window of '${entry.id}' is ${entry.contextTokens}.`,
        { param: "messages" },
      )
    const granted = { ...request, maxTokens: Math.min(request.maxTokens, room) }
    const { answers = 1 } = request
    const bound = usageOf({
      inputTokens,
      outputTokens: answers * granted.maxTokens,
      reasoningTokens: answers * granted.maxTokens,
    })
    return {
      bound,
      run: runSteps(
        runs,
        entry.id,
        script,
        request,
        context,
        answersOf(stepsOf(speech(script, granted), inputTokens), answers),
      ),
    }
  })
  return {
    entry,
    runs,
    loaded: {
      task: { plan },
      contextTokens: entry.contextTokens,
      modalities: entry.modalities,
      capabilities: ["tool_use", "thinking", "structured_output", "prompt_caching"],
      adapters: [],
      servedBy: "fake",
    },
  }
}
