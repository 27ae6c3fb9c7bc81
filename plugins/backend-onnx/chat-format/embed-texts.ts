import type { Tokenizer } from "tokenizers"

export interface EmbedTextsRequest {
  /** A text, or its tokens, with or without the special ones. */
  readonly texts: readonly (string | Int32Array)[]
  readonly instruction: string
  readonly truncate: "END" | "START" | "NONE"
  /** The maximum number of tokens of a text, special tokens included. */
  readonly maxTokens: number
}

export interface TokenizedText {
  readonly ids: Int32Array
  readonly truncated: boolean
}

/**
 * `tooLong`: the first text that does not fit, with `truncate` NONE. `instructionTooLong`: tokens
 * of an instruction that leaves no capacity for text.
 */
export type EmbedTexts =
  | { readonly texts: readonly TokenizedText[] }
  | { readonly tooLong: { readonly index: number; readonly tokens: number } }
  | { readonly instructionTooLong: number }

/** Special tokens before and after every text. */
interface Frame {
  readonly before: readonly number[]
  readonly after: readonly number[]
}

const readFrame = async (tokenizer: Tokenizer): Promise<Frame> => {
  const [framed, plain] = await Promise.all(
    [true, false].map(async (addSpecialTokens) =>
      (await tokenizer.encode("a", null, { addSpecialTokens })).getIds(),
    ),
  )
  const start = framed!.indexOf(plain![0]!)
  return { before: framed!.slice(0, start), after: framed!.slice(start + plain!.length) }
}

const isAt = (ids: Int32Array, wanted: readonly number[], at: number): boolean =>
  wanted.length > 0 && at >= 0 && wanted.every((id, i) => ids[at + i] === id)

/** The tokens of the text itself: whoever sends tokens may have sent the special ones, too. */
const unframed = (ids: Int32Array, { before, after }: Frame): Int32Array => {
  const from = isAt(ids, before, 0) ? before.length : 0
  const end = ids.length - after.length
  return ids.subarray(from, end >= from && isAt(ids, after, end) ? end : ids.length)
}

const frames = new WeakMap<Tokenizer, Promise<Frame>>()

/**
 * Finds the special tokens that the tokenizer puts around a text; they are the same for all texts.
 */
const frameOf = (tokenizer: Tokenizer): Promise<Frame> => {
  const known = frames.get(tokenizer) ?? readFrame(tokenizer)
  frames.set(tokenizer, known)
  return known
}

/**
 * Tokenizes texts with their instruction and truncates them to the model's window. The instruction
 * is never truncated.
 */
export const embedTexts = async (
  tokenizer: Tokenizer,
  { texts, instruction, truncate, maxTokens }: EmbedTextsRequest,
): Promise<EmbedTexts> => {
  const encode = async (text: string) =>
    (await tokenizer.encode(text, null, { addSpecialTokens: false })).getIds()
  const frame = await frameOf(tokenizer)
  const prefix = instruction ? await encode(instruction) : []
  const capacity = maxTokens - frame.before.length - frame.after.length - prefix.length
  if (capacity < 1) return { instructionTooLong: prefix.length }
  const tokenized: TokenizedText[] = []
  for (const [index, text] of texts.entries()) {
    const ids = typeof text === "string" ? await encode(text) : unframed(text, frame)
    const truncated = ids.length > capacity
    if (truncated && truncate === "NONE")
      return { tooLong: { index, tokens: ids.length + maxTokens - capacity } }
    const kept = truncate === "START" ? ids.slice(-capacity) : ids.slice(0, capacity)
    tokenized.push({
      ids: Int32Array.from([...frame.before, ...prefix, ...kept, ...frame.after]),
      truncated,
    })
  }
  return { texts: tokenized }
}
