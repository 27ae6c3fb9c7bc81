import { existsSync } from "node:fs"
import { join } from "node:path"
import { Tokenizer } from "tokenizers"
import type { Json } from "../../../../core/json.ts"
import { bytePairTokenizer } from "../../tokenizer/tokenizer-json.ts"
import { type Metadata, textIn } from "../../weights/gguf-metadata.ts"
import { readJson, readTextFile } from "../../weights/json-file.ts"
import { Damaged, explaining } from "../../weights/model-file-error.ts"

/** The tokens of a prompt, padded to the encoder's window, and where its end token is. */
export interface ClipTokens {
  readonly ids: readonly number[]
  readonly end: number
}

export interface ClipTokenizer {
  /** Prompts longer than the window lose their end, as in diffusers. */
  encode(prompt: string): Promise<ClipTokens>
}

const [vocabularyFile, mergesFile, settingsFile] = [
  "vocab.json",
  "merges.txt",
  "tokenizer_config.json",
] as const
const [startToken, endToken] = ["<|startoftext|>", "<|endoftext|>"]

const words = "'s|'t|'re|'ve|'m|'ll|'d|[\\p{L}]+|[\\p{N}]|[^\\s\\p{L}\\p{N}]+"

const mergesIn = (folder: string): readonly (readonly [string, string])[] =>
  readTextFile(folder, mergesFile)
    .split("\n")
    .filter((line) => line !== "" && !line.startsWith("#version"))
    .map((line) => {
      const [first, second, ...more] = line.trimEnd().split(" ")
      if (!first || !second || more.length) throw new Damaged(`it has the line '${line}'`)
      return [first, second]
    })

const vocabularyIn = (folder: string): Readonly<Record<string, number>> => {
  const vocabulary = readJson(folder, vocabularyFile)
  for (const [token, id] of vocabulary)
    if (typeof id !== "number" || !Number.isInteger(id) || id < 0)
      throw new Damaged(`the id of the token '${token}' is not one`)
  return Object.fromEntries(vocabulary) as Readonly<Record<string, number>>
}

const tokenizerJson = (
  vocab: Readonly<Record<string, number>>,
  merges: readonly (readonly [string, string])[],
  padding: string,
): Json =>
  bytePairTokenizer({
    vocab,
    merges,
    // a mark such as "!" that is also padding is the padding's token in prompts, too
    added:
      padding !== endToken && Object.hasOwn(vocab, padding) ? [[padding, vocab[padding]!]] : [],
    normalizer: {
      type: "Sequence",
      normalizers: [
        { type: "NFC" },
        { type: "Replace", pattern: { Regex: "\\s+" }, content: " " },
        { type: "Lowercase" },
      ],
    },
    preTokenizer: {
      type: "Sequence",
      pretokenizers: [
        { type: "Split", pattern: { Regex: words }, behavior: "Removed", invert: true },
        { type: "ByteLevel", add_prefix_space: false, trim_offsets: true, use_regex: true },
      ],
    },
    model: { unk_token: endToken, end_of_word_suffix: "</w>", continuing_subword_prefix: "" },
  })

/** A special token, as text or in an object. */
const specialIn = (settings: Metadata, key: string, byDefault: string): string => {
  const value: unknown = settings.get(key) ?? byDefault
  return typeof value === "object" && value !== null && !Array.isArray(value)
    ? textIn(new Map(Object.entries(value)), "content")
    : String(value)
}

const fromParts = (folder: string, padding: string): Tokenizer => {
  const vocabulary = explaining(join(folder, vocabularyFile), () => vocabularyIn(folder))
  const merges = explaining(join(folder, mergesFile), () => mergesIn(folder))
  return explaining(folder, () => {
    try {
      return Tokenizer.fromString(JSON.stringify(tokenizerJson(vocabulary, merges, padding)))
    } catch (cause) {
      throw new Damaged(`its tokenizer can't be used (${(cause as Error).message})`)
    }
  })
}

/**
 * Opens the tokenizer of a CLIP text encoder: tokenizer.json, or vocab.json with merges.txt. Throws
 * `ModelFileError`.
 */
export const openClipTokenizer = (folder: string, positions: number): ClipTokenizer => {
  const settings = readJson(folder, settingsFile)
  const padding = specialIn(settings, "pad_token", endToken)
  const whole = "tokenizer.json"
  const tokenizer = existsSync(join(folder, vocabularyFile))
    ? fromParts(folder, padding)
    : explaining(join(folder, whole), () => Tokenizer.fromString(readTextFile(folder, whole)))
  tokenizer.disablePadding()
  tokenizer.disableTruncation()
  const idOf = (token: string): number =>
    explaining(folder, () => {
      const id = tokenizer.tokenToId(token)
      if (id === null) throw new Damaged(`it has no token '${token}'`)
      return id
    })
  const start = idOf(specialIn(settings, "bos_token", startToken))
  const end = idOf(specialIn(settings, "eos_token", endToken))
  const empty = idOf(padding)
  return {
    encode: async (prompt) => {
      const encoding = await tokenizer.encode(prompt, null, { addSpecialTokens: false })
      const own = encoding.getIds().slice(0, positions - 2)
      const behind = new Array<number>(positions - 2 - own.length).fill(empty)
      return { ids: [start, ...own, end, ...behind], end: own.length + 1 }
    },
  }
}
