import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import fc from "fast-check"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { runs } from "../../../testing/property.ts"
import { chatPrompt, type Prompt } from "../chat-format/chat-prompt.ts"
import { controlGuard } from "../chat-format/control-guard.ts"
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
  expect(idsOfWords(vocabulary, ["yes", "never"])).toHaveLength(1)
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
  const ask = { query: "the query", instruction: "i", contextTokens: 1200 }
  test("hold instruction, query and document", async () => {
    const result = await rerankPrompts(chat, { ...ask, documents: ["one", "two"] })
    if (!("prompts" in result)) throw new Error("refused")
    expect(result.prompts.map(shown)[1]).toContain(
      'Query: the query\nDocument: two\nIs the document about "the query"?',
    )
  })

  test("a document is cut at its end, to the last token that fits", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.string({ unit: "grapheme", minLength: 200, maxLength: 900 }),
        async (document) => {
          const result = await rerankPrompts(chat, { ...ask, documents: [document] })
          if (!("prompts" in result)) throw new Error("refused")
          const text = shown(result.prompts[0]!)
          const kept = text.slice(
            text.lastIndexOf("Document: ") + 10,
            text.lastIndexOf("\nIs the document"),
          )
          expect(result.prompts[0]!.length).toBeLessThanOrEqual(1200)
          expect(document.startsWith(kept)).toBe(true)
          // at most one character of four tokens is left out beside what does not fit
          expect(result.prompts[0]!.length).toBeGreaterThan(kept === document ? 0 : 1190)
        },
      ),
      { numRuns: runs(50) },
    )
  })

  test("a query that does not fit is refused", async () => {
    const result = await rerankPrompts(chat, { ...ask, query: "q".repeat(600), documents: ["d"] })
    expect(result).toHaveProperty("queryTooLong")
  })
})
