import { existsSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Tokenizer } from "tokenizers"
import { Damaged } from "../weights/model-file-error.ts"
import { ChatTemplate } from "./chat-template.ts"
import type { ChatLanguage } from "./vocabulary.ts"

/** Increment it whenever files written by earlier versions must be written again. */
export const chatTokenizerVersion = 5

const tokenizerFile = "tokenizer.json"
const laterTokenizerFile = "later-tokenizer.json"
const chatFile = "chat.json"

/** What prompts need besides the tokenizer; stored in the graph's folder. */
export interface ChatFormat {
  readonly template: string
  readonly toolTemplate?: string
  /** Ids of control tokens, by text. */
  readonly controlTokens: Readonly<Record<string, number>>
  /** Ids of control tokens that take the white space behind them along. */
  readonly strippingTokens: readonly number[]
  /** Ids of control tokens that take the white space before them along. */
  readonly strippingBefore: readonly number[]
  readonly bosToken: string
  readonly eosToken: string
  /**
   * Bytes of the longest token: a lower bound of a prompt's tokens is known before it is tokenized.
   */
  readonly longestTokenBytes: number
}

const mustWork = (what: string, attempt: () => unknown): void => {
  try {
    attempt()
  } catch (cause) {
    throw new Damaged(`its ${what} can't be used (${(cause as Error).message})`)
  }
}

/** Writes the files that `loadChatTokenizer` reads, after a trial run. Throws `Damaged`. */
export const writeChatTokenizer = (language: ChatLanguage, folder: string): void => {
  const { vocabulary, controlTokens, strippingTokens = [], strippingBefore = [] } = language
  const { template, toolTemplate, bosToken, eosToken } = language
  const longestTokenBytes = vocabulary.tokens.reduce(
    (most, _, id) => Math.max(most, vocabulary.bytesOf(id).length),
    1,
  )
  const format: ChatFormat = {
    template,
    ...(toolTemplate !== undefined && { toolTemplate }),
    controlTokens,
    strippingTokens,
    strippingBefore,
    bosToken,
    eosToken,
    longestTokenBytes,
  }
  const texts = [
    [tokenizerFile, JSON.stringify(language.tokenizer)],
    ...(language.laterTokenizer === undefined
      ? []
      : [[laterTokenizerFile, JSON.stringify(language.laterTokenizer)] as const]),
  ] as const
  for (const [, text] of texts) mustWork("tokenizer", () => Tokenizer.fromString(text))
  for (const source of [template, toolTemplate ?? ""])
    mustWork("chat template", () => new ChatTemplate(source))
  for (const [name, text] of texts) writeFileSync(join(folder, name), text)
  writeFileSync(join(folder, chatFile), JSON.stringify(format))
}

export interface ChatTokenizer {
  readonly tokenizer: Tokenizer
  /** Tokenizer for text that does not begin the prompt. */
  readonly laterTokenizer: Tokenizer
  readonly format: ChatFormat
  readonly template: ChatTemplate
  readonly toolTemplate?: ChatTemplate
}

/** With the template for requests with tools, where there is one of its own. */
export const forTools = (chat: ChatTokenizer): ChatTokenizer => {
  const { toolTemplate: template, format } = chat
  return template && format.toolTemplate !== undefined
    ? { ...chat, template, format: { ...format, template: format.toolTemplate } }
    : chat
}

// each thread of the pool has its own
const loaded = new Map<string, ChatTokenizer>()

export const loadChatTokenizer = (folder: string): ChatTokenizer => {
  const known = loaded.get(folder)
  if (known) return known
  const format = JSON.parse(readFileSync(join(folder, chatFile), "utf8")) as ChatFormat
  const [first, later] = [tokenizerFile, laterTokenizerFile].map((name) => join(folder, name)) as [
    string,
    string,
  ]
  const tokenizer = Tokenizer.fromFile(first)
  const fresh = {
    format,
    template: new ChatTemplate(format.template),
    ...(format.toolTemplate !== undefined && {
      toolTemplate: new ChatTemplate(format.toolTemplate),
    }),
    tokenizer,
    laterTokenizer: existsSync(later) ? Tokenizer.fromFile(later) : tokenizer,
  }
  loaded.set(folder, fresh)
  return fresh
}
