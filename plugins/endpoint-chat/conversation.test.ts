import fc from "fast-check"
import { expect, it } from "vitest"
import { runs } from "../../testing/property.ts"
import { conversationProblem } from "./conversation.ts"
import type { ChatMessage } from "./message-schema.ts"

const id = fc.constantFrom("a", "b", "c")
const message: fc.Arbitrary<ChatMessage> = fc.oneof(
  fc.constant<ChatMessage>({ role: "user", content: "hi" }),
  id.map((tool_call_id): ChatMessage => ({ role: "tool", tool_call_id, content: "42" })),
  fc.uniqueArray(id).map(
    (ids): ChatMessage => ({
      role: "assistant",
      content: "",
      tool_calls: ids.map((one) => ({
        id: one,
        type: "function",
        function: { name: "f", arguments: "{}" },
      })),
    }),
  ),
)

/** The same rule in another form: the conversation is cut into turns. */
const fits = (messages: readonly ChatMessage[]): boolean => {
  if (messages.length === 0) return true
  const [turn, ...rest] = messages
  const end = rest.findIndex(({ role }) => role !== "tool")
  const answers = end < 0 ? rest : rest.slice(0, end)
  const asked = (turn?.tool_calls ?? []).map((call) => call.id)
  const same =
    JSON.stringify(answers.map((answer) => answer.tool_call_id).sort()) ===
    JSON.stringify([...asked].sort())
  return turn?.role !== "tool" && same && fits(rest.slice(answers.length))
}

/** Makes a valid conversation of what was drawn. */
const validOf = (messages: readonly ChatMessage[]): readonly ChatMessage[] =>
  messages
    .filter(({ role }) => role !== "tool")
    .flatMap((turn) => [
      turn,
      ...(turn.tool_calls ?? [])
        .map((call): ChatMessage => ({ role: "tool", tool_call_id: call.id, content: "" }))
        .reverse(),
    ])

it("each call is answered once, right behind it, and nothing else is", () => {
  fc.assert(
    fc.property(fc.array(message, { maxLength: 8 }), (messages) => {
      expect(conversationProblem(messages) === undefined).toBe(fits(messages))
      expect(conversationProblem(validOf(messages))).toBeUndefined()
    }),
    { numRuns: runs(2_000) },
  )
})

it("what is wrong stands at its path", () => {
  fc.assert(
    fc.property(fc.array(message, { maxLength: 8 }), (messages) => {
      const path = conversationProblem(messages)?.path
      if (!path) return
      const at = path.reduce<unknown>(
        (value, key) => (value as Record<string | number, unknown>)[key],
        { messages },
      )
      expect(["a", "b", "c"]).toContain(at)
    }),
  )
})
