import type { Tokenizer } from "tokenizers"
import { overlapOf, windowsOf } from "./document-windows.ts"

export interface EmbedTextsRequest {
  /** A text, or its tokens, with or without the special ones. */
  readonly texts: readonly (string | Int32Array)[]
  /** What is before each text, as it is. */
  readonly instruction: string
  readonly truncate: "END" | "START" | "NONE"
  /** The maximum number of tokens of a text, special tokens and instruction included. */
  readonly maxTokens: number
  /** The number of tokens that the model reads at once. */
  readonly window: number
}

/** A part of a text as the model reads it: special tokens and instruction included. */
export interface TextWindow {
  readonly ids: Int32Array
  /** Tokens of the text that no window before has: its weight among the text's windows. */
  readonly fresh: number
}

/** A text that fits has one window. */
export interface TokenizedText {
  readonly windows: readonly TextWindow[]
  /** Tokens of the whole text, with those around it once. */
  readonly tokens: number
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

/** Divides tokens into overlapping parts of at most `capacity`; none are one part. */
const partsOf = (ids: readonly number[], capacity: number) => {
  const overlap = overlapOf(capacity, 8)
  const { windows } = windowsOf(Math.max(1, ids.length), capacity, { overlap })
  return windows.map(({ from, to }) => {
    const part = ids.slice(from, to)
    return { ids: part, fresh: part.length - (from > 0 ? overlap : 0) }
  })
}

interface Around {
  readonly frame: Frame
  /** Tokens of the instruction. */
  readonly prefix: readonly number[]
}

/**
 * The windows of a text's tokens. Each begins with the instruction; one that leaves less than half
 * of the window to the text is read as the text's beginning, as repeating it would multiply the
 * work.
 */
const framedWindows = (
  ids: readonly number[],
  { frame: { before, after }, prefix }: Around,
  window: number,
): readonly TextWindow[] => {
  const room = window - before.length - after.length
  const fits = prefix.length < room && prefix.length + ids.length <= room
  const isShort = prefix.length <= room / 2 || fits
  const [repeated, body] = isShort ? [prefix, ids] : [[], [...prefix, ...ids]]
  return partsOf(body, room - repeated.length).map((part) => ({
    ids: Int32Array.from([...before, ...repeated, ...part.ids, ...after]),
    fresh: part.fresh,
  }))
}

/** How many tokens both begin with: a token may span the end of an instruction and its text. */
const commonLength = (a: readonly number[], b: readonly number[]): number => {
  const differs = a.findIndex((id, index) => id !== b[index])
  return differs < 0 ? a.length : differs
}

/**
 * Tokenizes texts with their instruction, truncates them to `maxTokens`, and divides what is longer
 * than the model's window. The instruction is never truncated.
 */
export const embedTexts = async (
  tokenizer: Tokenizer,
  { texts, instruction, truncate, maxTokens, window }: EmbedTextsRequest,
): Promise<EmbedTexts> => {
  const encode = async (text: string) =>
    (await tokenizer.encode(text, null, { addSpecialTokens: false })).getIds()
  const frame = await frameOf(tokenizer)
  const alone = instruction ? await encode(instruction) : []
  const framed = frame.before.length + frame.after.length
  if (maxTokens - framed - alone.length < 1 || window <= framed)
    return { instructionTooLong: alone.length }
  const tokenized: TokenizedText[] = []
  for (const [index, text] of texts.entries()) {
    const all =
      typeof text === "string"
        ? await encode(`${instruction}${text}`)
        : [...alone, ...unframed(text, frame)]
    const begins = commonLength(alone, all)
    const [prefix, ids] = [all.slice(0, begins), all.slice(begins)]
    const around = framed + prefix.length
    const capacity = maxTokens - around
    const truncated = ids.length > capacity
    if (truncated && truncate === "NONE") return { tooLong: { index, tokens: ids.length + around } }
    const kept = truncate === "START" ? ids.slice(-capacity) : ids.slice(0, capacity)
    const windows = framedWindows(kept, { frame, prefix }, window)
    tokenized.push({ windows, tokens: kept.length + around, truncated })
  }
  return { texts: tokenized }
}
