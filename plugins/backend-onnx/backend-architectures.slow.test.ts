import { afterAll, expect, test } from "vitest"
import type { ChatMessage } from "../../core/ports/model.ts"
import { expectedOf, fixtureFolder } from "./testing/fixtures.ts"
import { answer, chatRequest, openBackend } from "./testing/open-backend.ts"
import { folderLanguage } from "./tokenizer/folder-language.ts"

const fixture = openBackend({ slots: 2 })
afterAll(() => fixture.close())

/** The text of the likeliest tokens, as transformers chose them. */
const wanted = (name: string): string => {
  const { vocabulary, startsWithSpace } = folderLanguage(fixtureFolder(name), 416)
  const bytes = Buffer.concat(
    expectedOf(name).greedy.map((id) =>
      id < vocabulary.tokens.length ? vocabulary.bytesOf(id) : Buffer.alloc(0),
    ),
  )
  // a character that is incomplete at the very end is not returned
  const text = new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes, { stream: true })
  return startsWithSpace && text.startsWith(" ") ? text.slice(1) : text
}

const messages = (name: string): readonly ChatMessage[] =>
  expectedOf(name).chat.map(({ role, content }) => ({
    role: role as "system",
    content: [{ type: "text", text: content }],
  }))

test.each([
  ["llama", "llama"],
  ["llama3-sharded", "llama3-sharded"],
  ["mistral", "mistral"],
  ["qwen2", "qwen2"],
  ["qwen3", "qwen3"],
  ["gemma3", "gemma3"],
  ["smollm3", "smollm3"],
  ["phi3", "phi3"],
  ["phi4-mini", "phi4-mini"],
  ["qwen3-moe", "qwen3-moe"],
  ["llama-export", "llama"],
])("%s answers a chat as transformers does, alone and beside others", async (folder, name) => {
  const model = await fixture.open("chat", fixtureFolder(folder), {
    options: { precision: "fp32" },
  })
  const { greedy, chatIds } = expectedOf(name)
  const asked = chatRequest("", { messages: messages(name), maxTokens: greedy.length })
  const [one, other] = await Promise.all([answer(model, asked), answer(model, asked)])
  for (const { text, usage, finish } of [one, other])
    expect({ text, input: usage.inputTokens, output: usage.outputTokens, finish }).toEqual({
      text: wanted(name),
      input: chatIds.length,
      output: 16,
      finish: "length",
    })
})
