import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll } from "vitest"
import { writeGguf } from "../../testing/gguf-writer.ts"
import { tinyLlama } from "../../testing/tiny-llama.ts"
import { ChatTemplate } from "../../tokenizer/chat-template.ts"
import {
  type ChatTokenizer,
  loadChatTokenizer,
  writeChatTokenizer,
} from "../../tokenizer/chat-tokenizer.ts"
import { ggufLanguage } from "../../tokenizer/gguf-language.ts"
import type { Vocabulary } from "../../tokenizer/vocabulary.ts"
import { openGguf } from "../../weights/gguf-file.ts"
import { chatPrompt, type PromptMessage, type PromptRequest } from "../chat-prompt.ts"

export const user = (content: string): PromptMessage => ({ role: "user", content })

/** Renders prompts with the tokenizer of a tiny model. Call it once in a test file. */
export const promptRenderer = () => {
  const root = mkdtempSync(join(tmpdir(), "rakit-prompt-"))
  let tiny: ChatTokenizer
  let vocabulary: Vocabulary

  beforeAll(() => {
    const path = join(root, "tiny.gguf")
    writeFileSync(path, writeGguf(tinyLlama()))
    const file = openGguf(path)
    const language = ggufLanguage(file.header.metadata, file.tensor("token_embd.weight").rows)
    vocabulary = language.vocabulary
    file.close()
    writeChatTokenizer(language, root)
    tiny = loadChatTokenizer(root)
  })
  afterAll(() => rmSync(root, { recursive: true, force: true }))

  /**
   * With control tokens as they are written, so that the prompt reads as the template rendered it;
   * the number of them.
   */
  const promptOf = async (
    template: string,
    ask: PromptRequest,
    controls: Readonly<Record<string, number>> = {},
  ) => {
    const controlTokens = { ...tiny.format.controlTokens, ...controls }
    const prompt = await chatPrompt(
      {
        ...tiny,
        template: new ChatTemplate(template),
        format: { ...tiny.format, template, controlTokens },
      },
      ask,
      1e6,
    )
    if (!("ids" in prompt)) throw new Error(JSON.stringify(prompt))
    const names = new Map(Object.entries(controlTokens).map(([name, id]) => [id, name]))
    const parts = [...prompt.ids].map((id) => Buffer.from(names.get(id) ?? vocabulary.bytesOf(id)))
    return {
      text: Buffer.concat(parts).toString("utf8"),
      controls: [...prompt.ids].filter((id) => names.has(id)).length,
      form: prompt.form,
      before: prompt.cacheBreakpoints.map((mark) =>
        Buffer.concat(parts.slice(0, mark)).toString("utf8"),
      ),
    }
  }
  return { promptOf, tokenizer: () => tiny }
}
