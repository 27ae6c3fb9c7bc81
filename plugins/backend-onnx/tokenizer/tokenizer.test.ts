import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import fc from "fast-check"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { runs } from "../../../testing/property.ts"
import { chatPrompt, type Prompt } from "../chat-format/chat-prompt.ts"
import { controlGuard } from "../chat-format/control-guard.ts"
import type { DocumentPart } from "../chat-format/document-windows.ts"
import { rerankPrompts } from "../chat-format/rerank-prompt.ts"
import { writeGguf } from "../testing/gguf-writer.ts"
import { tinyLlama } from "../testing/tiny-llama.ts"
import { type GgufFile, openGguf } from "../weights/gguf-file.ts"
import { fromByteLevel, toByteLevel } from "./byte-level.ts"
import { type ChatTokenizer, loadChatTokenizer, writeChatTokenizer } from "./chat-tokenizer.ts"
import { ggufLanguage } from "./gguf-language.ts"
import { type ChatLanguage, idsOfWords, type Vocabulary } from "./vocabulary.ts"

const root = mkdtempSync(join(tmpdir(), "rakit-tokenizer-"))
let file: GgufFile
let language: ChatLanguage
let vocabulary: Vocabulary
let chat: ChatTokenizer

beforeAll(() => {
  const content = tinyLlama()
  const path = join(root, "tiny.gguf")
  writeFileSync(path, writeGguf(content))
  file = openGguf(path)
  language = ggufLanguage(file.header.metadata, file.tensor("token_embd.weight").rows)
  vocabulary = language.vocabulary
  writeChatTokenizer(language, root)
  chat = loadChatTokenizer(root)
})
afterAll(() => {
  file.close()
  rmSync(root, { recursive: true, force: true })
})

const idsIn = (prompt: Prompt): Int32Array => {
  if (!("ids" in prompt)) throw new Error(JSON.stringify(prompt))
  return prompt.ids
}
/** Decodes ids, with control tokens in brackets. */
const shown = (ids: Iterable<number>): string => {
  const parts = [...ids].map((id) =>
    vocabulary.isControl(id) ? Buffer.from(`[${id}]`) : vocabulary.bytesOf(id),
  )
  return Buffer.concat(parts).toString("utf8")
}
const anyText = fc.string({ unit: "binary" })

test("byte-level text can be read back", () => {
  fc.assert(
    fc.property(anyText, (text) => {
      expect(fromByteLevel(toByteLevel(text)).toString("utf8")).toBe(
        Buffer.from(text).toString("utf8"),
      )
    }),
  )
})

test("the tokenizer of the file's metadata keeps every text, and merges words", async () => {
  await fc.assert(
    fc.asyncProperty(anyText, async (text) => {
      const encoded = await chat.tokenizer.encode(text, null, { addSpecialTokens: false })
      expect(shown(encoded.getIds())).toBe(Buffer.from(text).toString("utf8"))
    }),
  )
  expect((await chat.tokenizer.encode("yes", null)).getLength()).toBe(1)
  expect(idsOfWords(vocabulary, vocabulary.bytesOf, ["yes", "never"])).toHaveLength(1)
  expect(language.endTokens).toEqual([1, 2])
})

test("a chat is rendered by the file's template", async () => {
  const ids = idsIn(
    await chatPrompt(chat, { messages: [{ role: "user", content: "the 12" }] }, 100),
  )
  expect(shown(ids)).toBe("[0]user\nthe 12[1]\n[0]assistant\n")
})

describe("text of users never becomes a control token", () => {
  const pieces = fc.array(
    fc.oneof(
      fc.constantFrom(
        "<|im_end|>",
        "<|im_start|>",
        "<|im",
        "_end|>",
        "<|",
        "|>",
        "\n",
        "system",
        "\u{f0000}",
      ),
      anyText,
    ),
    { maxLength: 8 },
  )
  const count = (ids: Iterable<number>) => [...ids].filter((id) => vocabulary.isControl(id)).length

  test("and reads the same as it was written", async () => {
    await fc.assert(
      fc.asyncProperty(pieces, async (parts) => {
        const content = parts.join("")
        const ids = idsIn(await chatPrompt(chat, { messages: [{ role: "user", content }] }, 1e6))
        expect(count(ids)).toBe(3)
        expect(shown(ids)).toBe(
          `[0]user\n${Buffer.from(content).toString("utf8")}[1]\n[0]assistant\n`,
        )
      }),
    )
  })

  test("even when control tokens overlap", () => {
    const guard = controlGuard({ aba: 1, "ab*": 2 }, ["ababa ab*"])!
    expect(guard.parse(`aba${guard.shield("ababa ab*")}ab*`)).toEqual([1, "ababa ab*", 2])
  })

  test("and without a spare character there is no guard", () => {
    const all = Array.from({ length: 0x20000 }, (_, i) => String.fromCodePoint(0xf0000 + i)).join(
      "",
    )
    expect(controlGuard({ "<x>": 1 }, [all])).toBeUndefined()
  })
})

test("a prompt that can't fit is refused before it is tokenized", async () => {
  expect(
    await chatPrompt(chat, { messages: [{ role: "user", content: "x".repeat(10_000) }] }, 100),
  ).toEqual({ tooLong: Math.ceil(10_000 / chat.format.longestTokenBytes) })
})

describe("rerank prompts", () => {
  const ask = {
    query: "the query",
    instruction: "i",
    template: "chat",
    contextTokens: 1200,
  } as const
  const all = { goesOn: false, maxTokens: 1e9, maxWindows: 1e9, maxSequences: 1e9 }
  const promptsOf = async (text: string, part: Partial<DocumentPart> = {}) => {
    const result = await rerankPrompts(chat, { ...ask, parts: [{ ...all, ...part, text }] })
    if (!("parts" in result)) throw new Error("refused")
    return result.parts[0]!.windows.map(([ids]) => ids!)
  }
  const documentIn = (prompt: Int32Array): string => {
    const text = shown(prompt)
    return text.slice(text.lastIndexOf("Document: ") + 10, text.lastIndexOf("\nIs the document"))
  }

  test("hold instruction, query and document", async () => {
    const [prompt] = await promptsOf("two")
    expect(shown(prompt!)).toContain(
      'Query: the query\nDocument: two\nIs the document about "the query"?',
    )
    expect(await promptsOf(" \n\u3000")).toEqual([])
  })

  test("a document that does not fit is read in windows, which leave nothing out", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.string({ unit: "grapheme", minLength: 200, maxLength: 2_000 }),
        async (document) => {
          if (!document.trim()) return
          let read = 0
          for (const prompt of await promptsOf(document)) {
            expect(prompt.length).toBeLessThanOrEqual(1200)
            const window = documentIn(prompt)
            const at = document.lastIndexOf(window, read)
            expect(at).toBeGreaterThanOrEqual(0)
            read = Math.max(read, at + window.length)
          }
          expect(read).toBe(document.length)
        },
      ),
      { numRuns: runs(50) },
    )
  })

  test("what a request does not want to have read is not", async () => {
    const text = "the query and the answer ".repeat(100)
    expect(await promptsOf(text)).toHaveProperty("length", 4)
    expect(await promptsOf(text, { maxWindows: 1 })).toHaveProperty("length", 1)
    expect(await promptsOf(text, { maxSequences: 1 })).toHaveProperty("length", 1)
    const [few, ...more] = await promptsOf(text, { maxTokens: 10 })
    expect([text.startsWith(documentIn(few!)), documentIn(few!).length < 60, more]).toEqual([
      true,
      true,
      [],
    ])
  })

  test("a query that does not fit is refused", async () => {
    const parts = [{ ...all, text: "d" }]
    expect(await rerankPrompts(chat, { ...ask, query: "q".repeat(600), parts })).toHaveProperty(
      "queryTooLong",
    )
  })
})
