import type { Json } from "../../../core/json.ts"
import { Damaged } from "../weights/gguf-metadata.ts"

const byteLevel = (useRegex: boolean): Json => ({ type: "ByteLevel", add_prefix_space: false, trim_offsets: true, use_regex: useRegex })
const sequence = (...parts: Json[]): Json => ({ type: "Sequence", pretokenizers: parts })
const split = (pattern: string): Json => ({ type: "Split", pattern: { Regex: pattern }, behavior: "Isolated", invert: false })

// one digit or up to three at a time is the only difference between these two
const wordsWithDigits = (digits: string) => `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|${digits}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+`

interface PreTokenization {
  readonly preTokenizer: Json
  readonly ignoreMerges?: true
}

/** By `tokenizer.ggml.pre`: how text falls into words before BPE. The patterns are those of the models' own tokenizer.json (llama.cpp: llama-vocab.cpp). */
const known: Readonly<Record<string, PreTokenization>> = {
  "gpt-2": { preTokenizer: byteLevel(true) },
  smollm: { preTokenizer: sequence({ type: "Digits", individual_digits: true }, byteLevel(true)) },
  "llama-bpe": { preTokenizer: sequence(split(wordsWithDigits("\\p{N}{1,3}")), byteLevel(false)), ignoreMerges: true },
  qwen2: { preTokenizer: sequence(split(wordsWithDigits("\\p{N}")), byteLevel(false)) },
}

export const preTokenization = (name: string): PreTokenization => {
  const found = known[name]
  if (!found) throw new Damaged(`its pre-tokenizer is '${name}'; this backend knows ${Object.keys(known).join(", ")}`)
  return found
}
