import { Stream } from "effect"
import type { ChatEvent } from "../../core/ports/model.ts"

type ToolCallEvent = Extract<ChatEvent, { type: "toolCall" }>

/**
 * A tool call while it arrives. States: unnamed -> named (its name has come) -> open (arguments
 * other than white space have come).
 * `held`: arguments that came too early to be sent.
 */
interface Draft {
  state: "unnamed" | "named" | "open"
  id: string | undefined
  held: string
}

const advance = (
  draft: Draft,
  event: ToolCallEvent,
  makeId: () => string,
): readonly ToolCallEvent[] => {
  const out: ToolCallEvent[] = []
  draft.id ??= event.id
  draft.held += event.argumentsDelta
  if (draft.state === "unnamed" && event.name !== undefined) {
    draft.state = "named"
    out.push({
      ...event,
      id: draft.id ?? makeId(),
      name: event.name,
      argumentsDelta: "",
    })
  }
  // clients parse the arguments as they grow, and white space alone does not begin a document
  if (draft.state === "named" && draft.held.trim() !== "") draft.state = "open"
  if (draft.state === "open" && draft.held !== "") {
    const { id: _id, name: _name, ...rest } = event
    out.push({ ...rest, argumentsDelta: draft.held })
    draft.held = ""
  }
  return out
}

/** The calls of one answer, by their index. */
type Drafts = Map<number, Draft>

const normalize = (
  drafts: Drafts,
  event: ChatEvent,
  makeId: () => string,
): readonly ChatEvent[] => {
  if (
    event.type === "finish" &&
    event.reason === "stop" &&
    [...drafts.values()].some(({ state }) => state !== "unnamed")
  )
    return [{ ...event, reason: "tool_calls" }]
  if (event.type !== "toolCall") return [event]
  const draft = drafts.get(event.index) ?? { state: "unnamed", id: undefined, held: "" }
  drafts.set(event.index, draft)
  return advance(draft, event, makeId)
}

/**
 * Normalizes the tool call events of any model, one after the other: the first event of a call has
 * id, name and no arguments, the others have arguments only, and an answer with calls finishes with
 * `tool_calls`.
 */
export const toolCallNormalizer = (
  makeId: () => string,
): ((event: ChatEvent) => readonly ChatEvent[]) => {
  const answers = new Map<number, Drafts>()
  return (event) => {
    const { answer = 0 } = event
    const drafts = answers.get(answer) ?? new Map<number, Draft>()
    answers.set(answer, drafts)
    return normalize(drafts, event, makeId)
  }
}

/** The same for a stream. */
export const normalizeToolCalls = <E, R>(
  events: Stream.Stream<ChatEvent, E, R>,
  makeId: () => string,
): Stream.Stream<ChatEvent, E, R> =>
  Stream.mapAccum(
    events,
    () => toolCallNormalizer(makeId),
    (normalized, event) => [normalized, normalized(event)] as const,
  )
