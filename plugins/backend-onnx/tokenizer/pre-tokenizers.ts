import type { Json } from "../../../core/json.ts"
import { Unsupported } from "../weights/model-file-error.ts"

const byteLevel = (useRegex: boolean): Json => ({
  type: "ByteLevel",
  add_prefix_space: false,
  trim_offsets: true,
  use_regex: useRegex,
})
const sequence = (...parts: Json[]): Json => ({ type: "Sequence", pretokenizers: parts })
const split = (pattern: string): Json => ({
  type: "Split",
  pattern: { Regex: pattern },
  behavior: "Isolated",
  invert: false,
})

const contractions = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
const rest = "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
const wordsWithDigits = (digits: string) =>
  `${contractions}|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|${digits}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|${rest}`

// words end where lower case turns to upper case
const [upper, lower] = ["[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]", "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"]
const casedWords = (digits: string, ending: string) =>
  `[^\\r\\n\\p{L}\\p{N}]?${upper}*${lower}+${ending}|[^\\r\\n\\p{L}\\p{N}]?${upper}+${lower}*${ending}|${digits}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|${rest}`

interface PreTokenization {
  readonly preTokenizer: Json
  readonly normalizer?: Json
  readonly ignoreMerges?: true
}

const gpt2: PreTokenization = { preTokenizer: byteLevel(true) }
const digitByDigit: PreTokenization = {
  preTokenizer: sequence({ type: "Digits", individual_digits: true }, byteLevel(true)),
}
const llama3: PreTokenization = {
  preTokenizer: sequence(split(wordsWithDigits("\\p{N}{1,3}")), byteLevel(false)),
  ignoreMerges: true,
}
const qwen2: PreTokenization = {
  preTokenizer: sequence(split(wordsWithDigits("\\p{N}")), byteLevel(false)),
  normalizer: { type: "NFC" },
}
const tekken: PreTokenization = {
  preTokenizer: sequence(split(casedWords("\\p{N}", "")), byteLevel(false)),
  ignoreMerges: true,
}
const gpt4o: PreTokenization = {
  preTokenizer: sequence(split(casedWords("\\p{N}{1,3}", `${contractions}?`)), byteLevel(false)),
}
/**
 * What llama.cpp does with files that name none: split punctuation, then GPT-2's words, then digits
 * in groups of three.
 */
const unnamed: PreTokenization = {
  preTokenizer: sequence(
    split("[\\p{P}\\$\\+<=>\\^~\\|]+"),
    split("'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)"),
    split("\\p{N}+"),
    split("[0-9][0-9][0-9]"),
    byteLevel(false),
  ),
}

/**
 * Pre-tokenizers by `tokenizer.ggml.pre`: how text is split into words before BPE. The patterns are
 * those of the models' own tokenizer.json (llama.cpp: llama-vocab.cpp).
 */
const known: Readonly<Record<string, PreTokenization>> = {
  default: unnamed,
  "gpt-2": gpt2,
  "a.x-4.0": gpt2,
  mellum: gpt2,
  olmo: gpt2,
  smollm: digitByDigit,
  starcoder: digitByDigit,
  refact: digitByDigit,
  "command-r": digitByDigit,
  codeshell: digitByDigit,
  "llama-bpe": llama3,
  llama3,
  "llama-v3": llama3,
  falcon3: llama3,
  "midm-2.0": llama3,
  pixtral: llama3,
  "smaug-bpe": llama3,
  dbrx: { preTokenizer: llama3.preTokenizer },
  "gpt-4o": gpt4o,
  qwen2,
  "deepseek-r1-qwen": { preTokenizer: qwen2.preTokenizer },
  megrez: { preTokenizer: qwen2.preTokenizer },
  tekken,
}

export const preTokenization = (name: string): PreTokenization => {
  const found = Object.hasOwn(known, name) ? known[name] : undefined
  if (!found)
    throw new Unsupported(
      `its pre-tokenizer is '${name}'; this backend knows ${Object.keys(known).join(", ")}`,
    )
  return found
}
