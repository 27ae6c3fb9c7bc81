import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Template } from "@huggingface/jinja"
import { Tokenizer } from "tokenizers"
import type { GgufFile } from "../weights/gguf-file.ts"
import { Damaged, textIn } from "../weights/gguf-metadata.ts"
import { tokenizerJson } from "./tokenizer-json.ts"
import type { Vocabulary } from "./vocabulary.ts"

const tokenizerFile = "tokenizer.json"
const chatFile = "chat.json"

/** What prompts need beside the tokenizer; stored in the graph's folder. */
export interface ChatFormat {
  readonly template: string
  /** Text of a control token -> its id. */
  readonly controlTokens: Readonly<Record<string, number>>
  readonly bosToken: string
  readonly eosToken: string
  /** No token stands for more bytes, so that a hopelessly long prompt is refused before it is tokenized. */
  readonly longestTokenBytes: number
}

const tokenNamed = (file: GgufFile, vocabulary: Vocabulary, key: string): string => {
  const id = file.header.metadata.get(key)
  return typeof id === "number" ? (vocabulary.tokens[id] ?? "") : ""
}

const chatFormat = (file: GgufFile, vocabulary: Vocabulary): ChatFormat => {
  const controls = vocabulary.tokens.flatMap((token, id) => (vocabulary.isControl(id) ? [[token, id] as const] : []))
  return {
    template: textIn(file.header.metadata, "tokenizer.chat_template"),
    controlTokens: Object.fromEntries(controls),
    bosToken: tokenNamed(file, vocabulary, "tokenizer.ggml.bos_token_id"),
    eosToken: tokenNamed(file, vocabulary, "tokenizer.ggml.eos_token_id"),
    longestTokenBytes: vocabulary.tokens.reduce((most, _, id) => Math.max(most, vocabulary.bytesOf(id).length), 1),
  }
}

const mustWork = (what: string, attempt: () => unknown): void => {
  try {
    attempt()
  } catch (cause) {
    throw new Damaged(`its ${what} can't be used (${(cause as Error).message})`)
  }
}

/** Writes what `loadChatTokenizer` reads, after a trial. */
export const writeChatTokenizer = (file: GgufFile, vocabulary: Vocabulary, folder: string): void => {
  const format = chatFormat(file, vocabulary)
  const tokenizer = JSON.stringify(tokenizerJson(vocabulary))
  mustWork("tokenizer", () => Tokenizer.fromString(tokenizer))
  mustWork("chat template", () => new Template(format.template))
  writeFileSync(join(folder, tokenizerFile), tokenizer)
  writeFileSync(join(folder, chatFile), JSON.stringify(format))
}

export interface ChatTokenizer {
  readonly tokenizer: Tokenizer
  readonly format: ChatFormat
  readonly template: Template
}

// each thread of the pool keeps its own
const loaded = new Map<string, ChatTokenizer>()

export const loadChatTokenizer = (folder: string): ChatTokenizer => {
  const known = loaded.get(folder)
  if (known) return known
  const format = JSON.parse(readFileSync(join(folder, chatFile), "utf8")) as ChatFormat
  const fresh = { format, template: new Template(format.template), tokenizer: Tokenizer.fromFile(join(folder, tokenizerFile)) }
  loaded.set(folder, fresh)
  return fresh
}
