import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { describe, expect, test } from "vitest"
import { chatPrompt } from "../chat-format/chat-prompt.ts"
import { expectedOf, fixtureFolder } from "../testing/fixtures.ts"
import { byteLevelMetadata } from "../testing/gguf-of-folder.ts"
import { folderLanguage } from "./folder-language.ts"
import { ggufLanguage } from "./gguf-language.ts"
import { metadataOf, writtenLanguages } from "./testing/written-languages.ts"
import type { ChatLanguage } from "./vocabulary.ts"

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

describe("of named templates", () => {
  const named = (name: string) => `${name}{% for m in messages %}{{ m.content }}{% endfor %}`
  const [plain, tool] = [
    named("default:"),
    `{# <tool_call> #}{{ tools | length }} ${named("tool_use:")}`,
  ]
  const change = (folder: string, name: string, text: string) => {
    mkdirSync(dirname(join(folder, name)), { recursive: true })
    writeFileSync(join(folder, name), text)
  }
  const listed = (list: readonly object[]) => (folder: string) => {
    rmSync(join(folder, "chat_template.jinja"), { force: true })
    const file = join(folder, "tokenizer_config.json")
    const config = JSON.parse(readFileSync(file, "utf8")) as object
    change(folder, "tokenizer_config.json", JSON.stringify({ ...config, chat_template: list }))
  }
  const both = [
    { name: "tool_use", template: "another" },
    { name: "default", template: plain },
    { name: "tool_use", template: tool },
  ]
  const files = (folder: string) => {
    listed([{ name: "default", template: "another" }])(folder)
    change(folder, "chat_template.jinja", plain)
    change(folder, "additional_chat_templates/tool_use.jinja", tool)
  }
  const folderWith = (prepare: (folder: string) => void) => {
    const folder = mkdtempSync(join(tmpdir(), "rakit-templates-"))
    try {
      cpSync(fixtureFolder("llama"), folder, { recursive: true })
      prepare(folder)
      return folderLanguage(folder, 416)
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  }
  const fromGguf = () =>
    ggufLanguage(
      metadataOf({
        ...byteLevelMetadata(fixtureFolder("llama"), "smollm"),
        "tokenizer.chat_template": plain,
        "tokenizer.chat_template.tool_use": tool,
        "tokenizer.ggml.eos_token_id": 2,
      }),
      416,
    )
  const rendered = async (language: ChatLanguage, tools?: readonly (typeof weather)[]) => {
    const messages = [{ role: "user", content: "yes" }]
    const prompt = await chatPrompt(written(language), { messages, ...(tools && { tools }) }, 1e4)
    if (!("ids" in prompt)) throw new Error(JSON.stringify(prompt))
    const bytes = [...prompt.ids].map((id) => language.vocabulary.bytesOf(id))
    return Buffer.concat(bytes).toString("utf8")
  }

  test.each([
    ["a list of tokenizer_config.json", () => folderWith(listed(both))],
    ["files", () => folderWith(files)],
    ["a GGUF file", fromGguf],
  ])("in %s requests with tools take tool_use, others default", async (_, languageOf) => {
    const language = languageOf()
    expect(await rendered(language, [weather])).toBe("1 tool_use:yes")
    expect(await rendered(language)).toBe("default:yes")
    expect(await rendered(language, [])).toBe("default:yes")
  })

  test("without tool_use all take default", async () => {
    const language = folderWith(listed(both.slice(1, 2)))
    expect(language).not.toHaveProperty("toolTemplate")
    expect(await rendered(language)).toBe("default:yes")
  })
})

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
