import { readFileSync } from "node:fs"
import { join } from "node:path"
import type { GgufValue } from "./gguf-writer.ts"

interface TokenizerJson {
  readonly added_tokens: readonly { readonly id: number; readonly content: string; readonly special: boolean }[]
  readonly model: { readonly vocab: Readonly<Record<string, number>>; readonly merges: readonly (readonly [string, string])[] }
}

/** The metadata that llama.cpp's converter would write for a folder's byte-level tokenizer. */
export const byteLevelMetadata = (folder: string, pre: string): Readonly<Record<string, GgufValue>> => {
  const { added_tokens: added, model } = JSON.parse(readFileSync(join(folder, "tokenizer.json"), "utf8")) as TokenizerJson
  const tokens: string[] = []
  for (const [token, id] of Object.entries(model.vocab)) tokens[id] = token
  for (const { id, content } of added) tokens[id] = content
  const types = tokens.map(() => 1)
  for (const { id, special } of added) types[id] = special ? 3 : 4
  return {
    "tokenizer.ggml.model": "gpt2",
    "tokenizer.ggml.pre": pre,
    "tokenizer.ggml.tokens": tokens,
    "tokenizer.ggml.token_type": types,
    "tokenizer.ggml.merges": model.merges.map((pair) => pair.join(" ")),
  }
}

export interface SentencePieceFixture {
  readonly tokens: readonly string[]
  readonly scores: readonly number[]
  readonly types: readonly number[]
  readonly texts: readonly { readonly text: string; readonly ids: readonly number[] }[]
}

export const sentencePieceMetadata = ({ tokens, scores, types }: SentencePieceFixture): Readonly<Record<string, GgufValue>> => ({
  "tokenizer.ggml.model": "llama",
  "tokenizer.ggml.tokens": tokens,
  "tokenizer.ggml.scores": scores.map((f32) => ({ f32 })),
  "tokenizer.ggml.token_type": types,
  "tokenizer.ggml.bos_token_id": 1,
  "tokenizer.ggml.eos_token_id": 2,
})
