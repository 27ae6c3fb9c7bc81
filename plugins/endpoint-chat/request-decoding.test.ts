import { expect, it } from "vitest"
import { toRequest } from "./request-decoding.ts"
import type { ChatBody } from "./request-schema.ts"

const base = { model: "m", messages: [{ role: "user", content: "hi" }] } as ChatBody
const tool = { type: "function", function: { name: "f" } }

/**
 * What becomes of each field: `translated` (with a value that shows in the request of the Model
 * port), `endpoint` (read there), or `ignored`.
 * A new field of the schema does not compile until it is decided here.
 */
const fields: Record<keyof ChatBody, "endpoint" | "ignored" | { readonly translated: unknown }> = {
  model: "endpoint",
  adapter: "endpoint",
  messages: { translated: [{ role: "user", content: "other" }] },
  max_tokens: "endpoint",
  max_completion_tokens: "endpoint",
  temperature: { translated: 0.5 },
  top_p: { translated: 0.5 },
  n: { translated: 2 },
  stream: "endpoint",
  stream_options: "endpoint",
  stop: { translated: "end" },
  seed: { translated: 7 },
  top_k: { translated: 5 },
  min_p: { translated: 0.1 },
  repetition_penalty: { translated: 1.1 },
  frequency_penalty: { translated: 1 },
  presence_penalty: { translated: 1 },
  logit_bias: { translated: { "1": 5 } },
  logprobs: { translated: true },
  top_logprobs: { translated: 3 },
  tools: { translated: [tool] },
  tool_choice: { translated: "none" },
  parallel_tool_calls: { translated: false },
  response_format: { translated: { type: "json_object" } },
  guided_json: { translated: { type: "object" } },
  guided_regex: { translated: "a+" },
  guided_choice: { translated: ["a", "b"] },
  guided_grammar: { translated: 'start: "a"' },
  structured_outputs: { translated: { regex: "a+" } },
  json_schema: { translated: { type: "object" } },
  regex: { translated: "a+" },
  chat_template_kwargs: { translated: { enable_thinking: true } },
  user: "ignored",
  metadata: "ignored",
}

/** Fields that mean something only beside another one. */
const beside: Partial<Record<keyof ChatBody, Partial<Record<keyof ChatBody, unknown>>>> = {
  top_logprobs: { logprobs: true },
  tool_choice: { tools: [tool] },
  parallel_tool_calls: { tools: [tool] },
}

it.each(Object.entries(fields))("%s goes where it should", (name, handling) => {
  if (typeof handling === "string") return
  const without = { ...base, ...beside[name as keyof ChatBody] } as ChatBody
  const given = { ...without, [name]: handling.translated } as ChatBody
  const parts = { maxTokens: 16, media: new Map() }
  expect(toRequest(given, parts)).not.toEqual(toRequest(without, parts))
})
