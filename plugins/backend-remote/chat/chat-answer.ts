import type {
  ChatEvent,
  ChatRequest,
  FinishReason,
  TokenLogprob,
} from "../../../core/ports/model.ts"
import { failure } from "../upstream/failure.ts"
import { errorText } from "../upstream/status-failure.ts"
import { checkForm, formChecks } from "./chat-form.ts"
import type { ChatUsage } from "./chat-usage.ts"
import type { FormCheck } from "./form-check-job.ts"

type Fields = Readonly<Record<string, unknown>>
const isFields = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value)
const textOf = (value: unknown): string => (typeof value === "string" ? value : "")
const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])

const garbled = (message: string) => failure("garbled", message)

/** In lower case: OpenAI's, TGI's, Mistral's, and those that proxies of other APIs let through. */
const reasons: Readonly<Record<string, FinishReason>> = {
  stop: "stop",
  eos_token: "stop",
  stop_sequence: "stop",
  end_turn: "stop",
  length: "length",
  max_tokens: "length",
  model_length: "length",
  tool_calls: "tool_calls",
  function_call: "tool_calls",
  tool_use: "tool_calls",
  content_filter: "content_filter",
  safety: "content_filter",
  refusal: "content_filter",
}

/** An answer that ended for a reason that nobody knows may be half of one. */
const toReason = (reason: string): FinishReason => {
  const known = reasons[reason.toLowerCase()]
  if (known) return known
  const shown = reason.slice(0, 40).replace(/[^a-z0-9_ -]/gi, "?")
  throw failure("cut", `the answer ended for the reason '${shown}'`)
}

const maxCalls = 128

const toLogprob = (value: unknown): TokenLogprob => {
  const { token, logprob, bytes } = isFields(value) ? value : {}
  if (typeof token !== "string" || typeof logprob !== "number" || Number.isNaN(logprob))
    throw garbled("a log-probability is not in its form")
  const known = listOf(bytes).filter((byte): byte is number => Number.isInteger(byte))
  return {
    token,
    logprob: Math.max(logprob, -9999),
    bytes: known.length > 0 ? known : [...Buffer.from(token)],
  }
}

/** One of the answers. States: open -> finished; what comes after its finish is dropped. */
interface Draft {
  readonly calls: Map<number, { name: string; arguments: string; id: string }>
  text: string
  reasoning: string
  /** The model's own, in a field of its own: its text has no form. */
  isRefusal: boolean
  finish: FinishReason | undefined
  /** What another Rakit says of a document that it closed. */
  isWhole: boolean | undefined
}

/**
 * Reads the chunks of a chat stream. Finishes are kept until the stream has ended, so that each
 * answer has exactly one, last, and a failure after it still fails the call.
 */
export class ChatAnswer {
  /** What the server calls the model, where it says it. */
  servedModel: string | undefined
  /** The server did not keep `max_tokens`: the answer is cut here. */
  isOverlong = false
  private readonly drafts: readonly Draft[]
  private readonly request: ChatRequest
  private readonly usage: ChatUsage
  private readonly mostPieces: number

  constructor(request: ChatRequest, maxTokens: number, usage: ChatUsage) {
    const answers = request.answers ?? 1
    this.request = request
    this.usage = usage
    // a piece is a token or more; calls begin with one that may be none
    this.mostPieces = answers * maxTokens + 16
    this.drafts = Array.from({ length: answers }, () => ({
      calls: new Map(),
      text: "",
      reasoning: "",
      isRefusal: false,
      finish: undefined,
      isWhole: undefined,
    }))
  }

  /** Whether each answer has its finish; then only usage is missing. */
  isFinished(): boolean {
    return this.drafts.every(({ finish }) => finish !== undefined)
  }

  /** All that was written so far: each text by itself, and the number of calls in them. */
  written(): { readonly texts: readonly string[]; readonly calls: number } {
    const calls = this.drafts.flatMap((draft) => [...draft.calls.values()])
    return {
      texts: [
        ...this.drafts.flatMap(({ text, reasoning }) => [reasoning, text]),
        ...calls.map((call) => `${call.name} ${call.arguments}`),
      ],
      calls: calls.length,
    }
  }

  /** The events in the data of one server-sent event. Throws an `UpstreamFailure`. */
  read(data: string): readonly ChatEvent[] {
    let chunk: unknown
    try {
      chunk = JSON.parse(data)
    } catch {
      throw garbled("an event is not JSON")
    }
    if (!isFields(chunk)) throw garbled("an event is not an object")
    if (chunk.error !== undefined && chunk.error !== null)
      throw failure("unavailable", `it failed: ${errorText(chunk).slice(0, 300)}`)
    if (chunk.choices === undefined && chunk.usage === undefined)
      throw garbled("an event is not a chunk of a chat")
    if (typeof chunk.model === "string") this.servedModel ??= chunk.model.slice(0, 200)
    this.usage.report(chunk.usage)
    return listOf(chunk.choices).flatMap((choice) => this.choice(choice))
  }

  /** What there is to check of the whole answers, when `end` was called. */
  checks(): readonly FormCheck[] {
    const answers = this.drafts.map((draft) => ({ ...draft, calls: [...draft.calls.values()] }))
    return formChecks(this.request, answers)
  }

  /** The finishes, once the stream has ended. Throws where an answer is not what was asked for. */
  end(): readonly ChatEvent[] {
    return this.drafts.flatMap((draft, answer): readonly ChatEvent[] => {
      if (this.isOverlong) draft.finish ??= "length"
      if (draft.finish === undefined) throw failure("cut", "the answer has no end")
      const of = answer > 0 ? { answer } : {}
      const blank = withoutArguments(draft).map((event) => ({ ...event, ...of }))
      const calls = [...draft.calls.values()]
      if (calls.length > 0 && draft.finish === "stop") draft.finish = "tool_calls"
      if (calls.length === 0 && draft.finish === "tool_calls") draft.finish = "stop"
      if (draft.isRefusal && draft.finish === "stop") draft.finish = "content_filter"
      checkForm(this.request, { ...draft, calls })
      const { isWhole } = draft
      const closed = isWhole !== undefined && { isWhole }
      return [...blank, { type: "finish", reason: draft.finish, ...closed, ...of }]
    })
  }

  private choice(choice: unknown): readonly ChatEvent[] {
    if (!isFields(choice)) throw garbled("a choice is not an object")
    const index = choice.index ?? 0
    const draft = this.drafts[index as number]
    if (!draft) throw garbled("there is a choice that was not asked for")
    if (draft.finish !== undefined || this.isOverlong) return []
    const answer = index === 0 ? {} : { answer: index as number }
    const events = isFields(choice.delta) ? this.delta(draft, choice.delta, choice.logprobs) : []
    const reason = choice.finish_reason
    if (typeof reason === "string" && reason !== "") {
      draft.finish = toReason(reason)
      const { document_complete } = choice
      if (typeof document_complete === "boolean") draft.isWhole = document_complete
    }
    if (this.usage.leastTokens() > this.mostPieces) this.isOverlong = true
    return events.map((event) => ({ ...event, ...answer }))
  }

  private delta(draft: Draft, delta: Fields, logprobs: unknown): readonly ChatEvent[] {
    const events: ChatEvent[] = []
    const reasoning = textOf(delta.reasoning_content) || textOf(delta.reasoning)
    if (reasoning !== "") {
      this.usage.wrote(reasoning, true)
      draft.reasoning += reasoning
      events.push({ type: "reasoning", text: reasoning })
    }
    const refusal = textOf(delta.refusal)
    if (refusal !== "") draft.isRefusal = true
    const text = textOf(delta.content) || refusal
    const content = isFields(logprobs) ? listOf(logprobs.content) : []
    if (text !== "" || (content.length > 0 && this.request.topLogprobs !== undefined)) {
      this.usage.wrote(text)
      draft.text += text
      events.push({ type: "text", text, ...this.logprobs(content) })
    }
    for (const call of listOf(delta.tool_calls)) events.push(...this.call(draft, call))
    return events
  }

  private logprobs(content: readonly unknown[]) {
    if (this.request.topLogprobs === undefined || content.length === 0) return {}
    return {
      logprobs: content.map((one) => ({
        ...toLogprob(one),
        top: listOf((one as Fields).top_logprobs).map(toLogprob),
      })),
    }
  }

  private call(draft: Draft, delta: unknown): readonly ChatEvent[] {
    const { index: given, id, function: called } = isFields(delta) ? delta : {}
    const { name, arguments: text } = isFields(called) ? called : {}
    // Servers that send whole calls leave out the index
    const isNew = typeof id === "string" && ![...draft.calls.values()].some((one) => one.id === id)
    const index = given ?? (isNew ? draft.calls.size : Math.max(0, draft.calls.size - 1))
    if (!Number.isInteger(index) || (index as number) < 0 || (index as number) >= maxCalls)
      throw garbled("a call of a tool has no place")
    const known = draft.calls.get(index as number) ?? { name: "", arguments: "", id: textOf(id) }
    const piece = typeof text === "string" ? text : isFields(text) ? JSON.stringify(text) : ""
    const isNamed = known.name === "" && textOf(name) !== ""
    if (isNamed) known.name = textOf(name)
    known.arguments += piece
    draft.calls.set(index as number, known)
    this.usage.wrote(piece)
    if (!isNamed && piece === "") return []
    return [
      {
        type: "toolCall",
        index: index as number,
        ...(typeof id === "string" && id !== "" && { id }),
        ...(isNamed && { name: known.name }),
        argumentsDelta: piece,
      },
    ]
  }
}

/** Some servers send nothing as the arguments of a call that has none. */
const withoutArguments = ({ calls, finish }: Draft): readonly ChatEvent[] =>
  finish === "length"
    ? []
    : [...calls].flatMap(([index, call]) => {
        if (call.arguments.trim() !== "") return []
        call.arguments = "{}"
        return [{ type: "toolCall", index, argumentsDelta: "{}" }]
      })
