import type { Json } from "../../core/json.ts"

/** What bench/chat.ts asks a child process that holds one engine (rakit-engine.ts, peers/llama-cpp.js), and what it answers. */
export interface Task {
  readonly id: number
  /** One for each stream. */
  readonly prompts: readonly (readonly number[])[]
  /** Each stream writes so many, past any end. */
  readonly tokens: number
  /** 0, greedy, unless told. */
  readonly temperature?: number
  /** JSON Schema that each stream follows. */
  readonly schema?: Json
  /** Read them first, untimed, so that they are cached. */
  readonly warm?: boolean
}

export interface Timing {
  readonly id: number
  /** Of all streams together, from the start to the last token. */
  readonly tokensPerSecond: number
  /** The same without the time until the last stream has its first token. */
  readonly writtenPerSecond: number
  /** Median of the streams. */
  readonly firstTokenMs: number
}

/** When each stream had its first and its last token, in ms from the start. */
export const timingOf = (
  id: number,
  tokens: number,
  marks: readonly { readonly firstMs: number; readonly lastMs: number }[],
): Timing => {
  const first = marks.map((mark) => mark.firstMs).sort((a, b) => a - b)
  const lastMs = Math.max(...marks.map((mark) => mark.lastMs))
  return {
    id,
    tokensPerSecond: ((marks.length * tokens) / lastMs) * 1000,
    writtenPerSecond: ((marks.length * (tokens - 1)) / (lastMs - first.at(-1)!)) * 1000,
    firstTokenMs: first[Math.floor(first.length / 2)]!,
  }
}
