import { expect, test } from "vitest"
import type { ChatEvent } from "../../../core/ports/model.ts"
import { syntaxes } from "../chat-format/call-syntax.ts"
import { answerEvents } from "./answer-events.ts"
import type { AnswerForm } from "./answer-parser.ts"

const calls = { syntax: syntaxes.hermes, tools: new Set(["time"]), only: false }
const form = (more: Partial<AnswerForm>): AnswerForm => ({
  reasoning: "none",
  callId: () => "call_1",
  ...more,
})
const pieceOf = (text: string) => ({
  text,
  details: [{ bytes: Buffer.from(text), logprob: -1, top: [] }],
})

const run = (of: AnswerForm, tokens: readonly string[], reason: "stop" | "length" = "stop") => {
  const events = answerEvents(of)
  const counts: number[] = []
  const all: ChatEvent[] = tokens.flatMap((token) => {
    const out = events.token(pieceOf(token))
    counts.push(events.reasoningTokens)
    return out
  })
  all.push(...events.finish({ text: "", reason }))
  return {
    events: all,
    counts,
    logprobs: all
      .flatMap((event) => (event.type === "text" ? (event.logprobs ?? []) : []))
      .map(({ token }) => token),
  }
}

test("tokens of the reasoning are counted as they come, its markers too; log-probabilities are those of visible text", () => {
  const { counts, logprobs, events } = run(form({ reasoning: "possible" }), [
    "<think>",
    "\n",
    "Hm",
    "</th",
    "ink>",
    "\n\n",
    "Hel",
    "lo",
  ])
  expect(counts).toEqual([1, 2, 3, 4, 5, 5, 5, 5])
  expect(logprobs).toEqual(["Hel", "lo"])
  expect(events.at(-1)).toEqual({ type: "finish", reason: "stop" })
})

test("no log-probabilities of calls, and a finish that says that there are some", () => {
  const { events, logprobs } = run(form({ calls }), [
    "Let",
    " me see",
    ".\n",
    "<tool",
    '_call>\n{"name": "time", "argu',
    'ments": {',
    "}}\n</tool_call>",
  ])
  expect(logprobs).toEqual(["Let", " me see", ".\n"])
  expect(events.filter(({ type }) => type !== "text")).toEqual([
    { type: "toolCall", index: 0, id: "call_1", name: "time", argumentsDelta: "" },
    { type: "toolCall", index: 0, argumentsDelta: "{" },
    { type: "toolCall", index: 0, argumentsDelta: "}" },
    { type: "finish", reason: "tool_calls" },
  ])
})

test("a cut answer ends with length, calls or not", () => {
  expect(
    run(form({ calls }), ['<tool_call>\n{"name": "time", "arguments": {'], "length").events.at(-1),
  ).toEqual({ type: "finish", reason: "length" })
})

test("tokens that are held back are reported when they turn out to be text", () => {
  const { events, logprobs } = run(form({ calls }), ["a ", "<tool", " b", " <"])
  expect(logprobs).toEqual(["a ", "<tool", " b", " <"])
  expect(events.map((event) => (event.type === "text" ? event.text : "")).join("")).toBe(
    "a <tool b <",
  )
})

test("where there is nothing to tell apart, every token is its own event", () => {
  const { events } = run(form({}), ["<think>", " ", "<tool_call>"])
  expect(events.map((event) => event.type)).toEqual(["text", "text", "text", "finish"])
})
