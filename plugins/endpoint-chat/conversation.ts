import type { ChatMessage } from "./message-schema.ts"

interface Problem {
  readonly path: readonly (string | number)[]
  readonly issue: string
}

const repeated = (message: ChatMessage, at: number): Problem | undefined => {
  const ids = (message.tool_calls ?? []).map((call) => call.id)
  const twice = ids.findIndex((id, index) => ids.indexOf(id) < index)
  return twice < 0
    ? undefined
    : { path: ["messages", at, "tool_calls", twice, "id"], issue: "is the id of an earlier call" }
}

const unanswered = (
  turn: ChatMessage | undefined,
  at: number,
  answered: ReadonlySet<string>,
): Problem | undefined => {
  const call = (turn?.tool_calls ?? []).findIndex(({ id }) => !answered.has(id))
  return call < 0
    ? undefined
    : {
        path: ["messages", at, "tool_calls", call, "id"],
        issue: "is answered by no message of role 'tool' right behind it",
      }
}

const wrongAnswer = (
  turn: ChatMessage | undefined,
  id: string,
  answered: ReadonlySet<string>,
): string | undefined => {
  if (!turn?.tool_calls?.length)
    return "answers no call: the message must follow a message with tool_calls"
  if (!turn.tool_calls.some((call) => call.id === id))
    return "is not the id of a call of the assistant's message before it"
  return answered.has(id) ? "is answered already" : undefined
}

/**
 * Each tool call of an assistant is answered once, by the tool messages right after it, and they
 * answer nothing else. Returns the first problem.
 */
export const conversationProblem = (messages: readonly ChatMessage[]): Problem | undefined => {
  let turn: ChatMessage | undefined
  let turnAt = 0
  let answered = new Set<string>()
  for (const [at, message] of messages.entries()) {
    if (message.role === "tool") {
      const id = message.tool_call_id ?? ""
      const issue = wrongAnswer(turn, id, answered)
      if (issue !== undefined) return { path: ["messages", at, "tool_call_id"], issue }
      answered.add(id)
    } else {
      const problem = unanswered(turn, turnAt, answered) ?? repeated(message, at)
      if (problem) return problem
      turn = message
      turnAt = at
      answered = new Set()
    }
  }
  return unanswered(turn, turnAt, answered)
}
