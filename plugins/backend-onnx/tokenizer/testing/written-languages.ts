import { mkdirSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll } from "vitest"
import type { Metadata, MetadataValue } from "../../weights/gguf-metadata.ts"
import { loadChatTokenizer, writeChatTokenizer } from "../chat-tokenizer.ts"
import type { ChatLanguage } from "../vocabulary.ts"

/** Writes languages and loads their tokenizers, in a temporary folder. Call it once in a test file. */
export const writtenLanguages = () => {
  const root = mkdtempSync(join(tmpdir(), "rakit-languages-"))
  afterAll(() => rmSync(root, { recursive: true, force: true }))
  let folders = 0
  const written = (language: ChatLanguage) => {
    const folder = join(root, `written-${folders++}`)
    mkdirSync(folder)
    writeChatTokenizer(language, folder)
    return loadChatTokenizer(folder)
  }
  return { root, written }
}

export const metadataOf = (values: Readonly<Record<string, unknown>>): Metadata =>
  new Map(
    Object.entries(values).map(([key, value]) => [
      key,
      (key === "tokenizer.ggml.scores"
        ? (value as { f32: number }[]).map(({ f32 }) => f32)
        : value) as MetadataValue,
    ]),
  )
