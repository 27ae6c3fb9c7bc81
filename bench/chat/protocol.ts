import type { Json } from "../../core/json.ts"

/**
 * The protocol between bench/chat.ts and a child process with one engine (rakit-engine.ts,
 * peers/llama-cpp.js).
 */
export interface Task {
  readonly id: number
  /** One entry per stream. */
  readonly prompts: readonly (readonly number[])[]
  /** Tokens that each stream generates, ignoring end tokens. */
  readonly tokens: number
  /** 0 (greedy) by default. */
  readonly temperature?: number
  /** JSON Schema that each stream follows. */
  readonly schema?: Json
  /** Prompts to prefill untimed first, so that they are cached. */
  readonly warm?: boolean
}

export interface Timing {
  readonly id: number
  /** Tokens per second of all streams together, from the start to the last token. */
  readonly tokensPerSecond: number
  /** The same without the time until the last stream has its first token. */
  readonly writtenPerSecond: number
  /** Median over the streams. */
  readonly firstTokenMs: number
  /** What each stream wrote; of Rakit's engine. */
  readonly answers?: readonly string[]
}

/** Times of a stream's first and last token, in ms from the start, and what it wrote. */
export interface StreamMarks {
  readonly firstMs: number
  readonly lastMs: number
  readonly answer: string
}

export const timingOf = (id: number, tokens: number, marks: readonly StreamMarks[]): Timing => {
  const first = marks.map((mark) => mark.firstMs).sort((a, b) => a - b)
  const lastMs = Math.max(...marks.map((mark) => mark.lastMs))
  return {
    id,
    tokensPerSecond: ((marks.length * tokens) / lastMs) * 1000,
    writtenPerSecond: ((marks.length * (tokens - 1)) / (lastMs - first.at(-1)!)) * 1000,
    firstTokenMs: first[Math.floor(first.length / 2)]!,
    answers: marks.map(({ answer }) => answer),
  }
}
