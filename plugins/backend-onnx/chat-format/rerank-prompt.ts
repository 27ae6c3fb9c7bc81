import type { ChatTokenizer } from "../tokenizer/chat-tokenizer.ts"
import {
  blankPart,
  type DocumentPart,
  likelyCharacters,
  nextPart,
  type ReadPart,
  type ReadParts,
  tokenizedPart,
} from "./document-windows.ts"
import { type QuestionPrompt, questionPrompt, type RerankQuestion } from "./rerank-template.ts"

export interface RerankPromptRequest extends RerankQuestion {
  readonly parts: readonly DocumentPart[]
  readonly contextTokens: number
}

class Refused extends Error {}

const idsOf = (prompt: QuestionPrompt): Int32Array => {
  if ("ids" in prompt) return prompt.ids
  throw new Refused(prompt.refused)
}

/** Tokens that are left free, as a cut changes how the words around it are tokenized. */
const marginOf = (capacity: number): number => Math.min(16, Math.floor(capacity / 8))

const withoutHalfCharacters = (text: string): string =>
  text.replace(/^[\udc00-\udfff]/, "").replace(/[\ud800-\udbff]$/, "")

/** The prompts of one request. */
class Prompts {
  private readonly chat: ChatTokenizer
  private readonly request: RerankPromptRequest
  private readonly capacity: number

  constructor(chat: ChatTokenizer, request: RerankPromptRequest, capacity: number) {
    this.chat = chat
    this.request = request
    this.capacity = capacity
  }

  private async of(document: string): Promise<Int32Array> {
    return idsOf(await questionPrompt(this.chat, this.request, document))
  }

  async read(part: DocumentPart): Promise<ReadPart<readonly Int32Array[]>> {
    if (!part.text.trim()) return blankPart(part)
    const whole = await this.wholeOf(part)
    if (whole) return { windows: [[whole]] }
    const tokenized = await tokenizedPart(
      this.chat.tokenizer,
      part,
      this.capacity - marginOf(this.capacity),
    )
    const windows: (readonly Int32Array[])[] = []
    for (const { from, to } of tokenized.windows) {
      const text = part.text.slice(tokenized.unitsBefore(from), tokenized.unitsBefore(to))
      windows.push([await this.fitted(text, to - from)])
    }
    const next = nextPart(tokenized, part)
    return { windows, ...(next && { next }) }
  }

  /** The prompt of the whole document, where it fits. */
  private async wholeOf(part: DocumentPart): Promise<Int32Array | undefined> {
    const { text, goesOn, maxTokens } = part
    // a token has at least one byte
    const mayBeCut = maxTokens < this.capacity && Buffer.byteLength(text) > maxTokens
    if (goesOn || mayBeCut || text.length > this.capacity * likelyCharacters) return undefined
    const ids = await this.of(text)
    return ids.length <= this.request.contextTokens ? ids : undefined
  }

  /** Shortens a window that the cuts made longer, at its end. */
  private async fitted(window: string, tokens: number): Promise<Int32Array> {
    const { contextTokens } = this.request
    let text = withoutHalfCharacters(window)
    let ids = await this.of(text)
    for (let kept = tokens; ids.length > contextTokens && kept > 0; ) {
      kept -= ids.length - contextTokens
      text = withoutHalfCharacters(
        text.slice(0, Math.floor((window.length * Math.max(0, kept)) / tokens)),
      )
      ids = await this.of(text)
    }
    return ids
  }
}

/**
 * Asks a yes-or-no question about each document, or about each window of one that does not fit.
 */
export const rerankPrompts = async (
  chat: ChatTokenizer,
  request: RerankPromptRequest,
): Promise<ReadParts<readonly Int32Array[]>> => {
  const { query, instruction, contextTokens } = request
  const atLeast = Math.ceil(Buffer.byteLength(query + instruction) / chat.format.longestTokenBytes)
  if (atLeast > contextTokens) return { queryTooLong: atLeast }
  try {
    const empty = idsOf(await questionPrompt(chat, request, ""))
    if (empty.length >= contextTokens) return { queryTooLong: empty.length }
    const prompts = new Prompts(chat, request, contextTokens - empty.length)
    const parts: ReadPart<readonly Int32Array[]>[] = []
    for (const part of request.parts) parts.push(await prompts.read(part))
    return { parts }
  } catch (cause) {
    if (cause instanceof Refused) return { refused: cause.message }
    throw cause
  }
}
