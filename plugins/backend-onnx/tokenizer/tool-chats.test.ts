import { describe, expect, test } from "vitest"
import { chatPrompt } from "../chat-format/chat-prompt.ts"
import { expectedOf, fixtureFolder } from "../testing/fixtures.ts"
import { byteLevelMetadata } from "../testing/gguf-of-folder.ts"
import { folderLanguage } from "./folder-language.ts"
import { ggufLanguage } from "./gguf-language.ts"
import { metadataOf, writtenLanguages } from "./testing/written-languages.ts"

const { written } = writtenLanguages()

const weather = {
  name: "weather",
  description: "The answer",
  parameters: { type: "object", properties: { city: { type: "string" } } },
}

const toolChat = (system: string, before: string) => [
  { role: "system", content: system },
  { role: "user", content: `Is it ${before}yes in Käse?` },
  {
    role: "assistant",
    content: "",
    toolCalls: [{ id: "call_1", name: "weather", arguments: '{"city":"Käse"}' }],
  },
  { role: "tool", content: "31 degrees", toolCallId: "call_1" },
]

describe("chats with tools are rendered as transformers renders them", () => {
  test("tools, calls and results of SmolLM3, whose system text turns thinking off", async () => {
    const chat = written(folderLanguage(fixtureFolder("smollm3"), 416))
    const messages = toolChat("You answer. /no_think", "<|tool|> ")
    const prompt = await chatPrompt(chat, { messages, tools: [weather], thinking: true }, 1e4)
    if (!("ids" in prompt)) throw new Error("refused")
    expect([...prompt.ids]).toEqual(expectedOf("smollm3").toolChatIds)
    expect(prompt.form).toEqual({ syntax: "hermes", reasoning: "none", markers: {} })
  })

  test("and of Phi-4-mini, whose system message carries the tools", async () => {
    const language = folderLanguage(fixtureFolder("phi4-mini"), 416)
    const messages = toolChat("You answer.", "")
    const { toolChatIds } = expectedOf("phi4-mini")
    const prompt = await chatPrompt(written(language), { messages, tools: [weather] }, 1e4)
    if (!("ids" in prompt)) throw new Error("refused")
    expect([...prompt.ids]).toEqual(toolChatIds)
    // GGUF files have the markers as control tokens
    const metadata: Readonly<Record<string, unknown>> = {
      ...byteLevelMetadata(fixtureFolder("phi4-mini"), "gpt-4o"),
      "tokenizer.chat_template": language.template,
      "tokenizer.ggml.eos_token_id": 4,
    }
    const types = metadata["tokenizer.ggml.token_type"] as readonly number[]
    const asControls = types.map((type) => (type === 4 ? 3 : type))
    const gguf = ggufLanguage(
      metadataOf({ ...metadata, "tokenizer.ggml.token_type": asControls }),
      416,
    )
    const same = await chatPrompt(written(gguf), { messages, tools: [weather] }, 1e4)
    if (!("ids" in same)) throw new Error("refused")
    expect([...same.ids]).toEqual(toolChatIds)
    expect(Object.keys(same.form.markers)).toEqual(["<|tool_call|>", "<|/tool_call|>"])
    expect(same.form.syntax).toBe("phi")
  })

  test("Gemma 3 is given tools as text, and its turns alternate all the same", async () => {
    const chat = written(folderLanguage(fixtureFolder("gemma3"), 416))
    const prompt = await chatPrompt(
      chat,
      { messages: toolChat("You answer.", ""), tools: [weather] },
      1e4,
    )
    expect(prompt).toHaveProperty("form", { syntax: "hermes", reasoning: "none", markers: {} })
  })
})
