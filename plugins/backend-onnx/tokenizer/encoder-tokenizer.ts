import { existsSync } from "node:fs"
import { join } from "node:path"
import { lowercase, sequenceNormalizer, Tokenizer } from "tokenizers"
import { type Metadata, textOr } from "../weights/gguf-metadata.ts"
import { readJson } from "../weights/json-file.ts"
import { isSavedAsItsKind } from "./sentence-folder.ts"

const configFile = "tokenizer_config.json"

/** Families that transformers loads tokenizer.json of as it is, whatever class the files name. */
const withoutClass = ["modernbert", "qwen2", "siglip2"]

interface ClassConfig {
  /** The class of transformers, without `Fast`; empty where it takes tokenizer.json as it is. */
  readonly name: string
  readonly json: Metadata
}

const classIn = (folder: string): ClassConfig => {
  if (!existsSync(join(folder, configFile))) return { name: "", json: new Map() }
  const json = readJson(folder, configFile)
  const family = textOr(readJson(folder, "config.json"), "model_type", "")
  const named: unknown = json.get("tokenizer_class")
  const name =
    withoutClass.includes(family) || typeof named !== "string" ? "" : named.replace(/Fast$/, "")
  return { name, json }
}

/** Classes whose inputs are tokens and a mask, unless tokenizer_config.json names others. */
const untyped = ["Camembert", "DistilBert", "GPT2", "MPNet", "Roberta", "XLMRoberta"]

/**
 * The token type of the second text of a pair that transformers gives the model whatever
 * tokenizer.json says: 0 where token types are no input, 1 where the class sets BERT's template.
 */
export const secondTypeIn = (folder: string): 0 | 1 | undefined => {
  const { name, json } = classIn(folder)
  const inputs: unknown = json.get("model_input_names")
  const isTyped = Array.isArray(inputs)
    ? inputs.includes("token_type_ids")
    : !untyped.some((known) => name === `${known}Tokenizer`)
  if (!isTyped) return 0
  return name === "BertTokenizer" ? 1 : undefined
}

type Part = Readonly<Record<string, unknown>>

const isPart = (value: unknown): value is Part =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** A part of tokenizer.json with `changes` to those of a type, also in a sequence. */
const changed = (part: unknown, type: string, changes: Part): unknown => {
  if (Array.isArray(part)) return part.map((item) => changed(item, type, changes))
  if (!isPart(part)) return part
  if (part.type === type) return { ...part, ...changes }
  return Object.fromEntries(
    Object.entries(part).map(([key, value]) => [
      key,
      key === "normalizers" || key === "pretokenizers" ? changed(value, type, changes) : value,
    ]),
  )
}

interface ChangedPart {
  readonly key: "normalizer" | "pre_tokenizer"
  readonly type: string
  readonly changes: Part
}

/** Keys of tokenizer_config.json by those of a part of tokenizer.json. */
const keysOf = {
  BertNormalizer: {
    lowercase: "do_lower_case",
    // null: as the case
    strip_accents: "strip_accents",
    handle_chinese_chars: "tokenize_chinese_chars",
  },
  ByteLevel: { add_prefix_space: "add_prefix_space" },
} as const

/** What a class of transformers builds anew from tokenizer_config.json, as far as it says it. */
const changedPart = ({ name, json }: ClassConfig): ChangedPart | undefined => {
  const type =
    name === "BertTokenizer"
      ? "BertNormalizer"
      : name === "RobertaTokenizer" || name === "GPT2Tokenizer"
        ? "ByteLevel"
        : undefined
  if (!type) return undefined
  const said = Object.entries(keysOf[type]).flatMap(([key, from]) => {
    const value: unknown = json.get(from)
    const isSaid = typeof value === "boolean" || (key === "strip_accents" && value === null)
    return isSaid ? [[key, value] as const] : []
  })
  if (said.length === 0) return undefined
  const key = type === "ByteLevel" ? "pre_tokenizer" : "normalizer"
  return { key, type, changes: Object.fromEntries(said) }
}

const tokenizerFile = "tokenizer.json"
/** Bytes of a tokenizer.json: those with the largest vocabularies have 40 million. */
const largestFile = 2 ** 28

const tokenizerJson = (folder: string): Metadata => readJson(folder, tokenizerFile, largestFile)

/** What the class builds anew: where both files say it, tokenizer_config.json counts. */
const classChanges = (json: Metadata, part: ChangedPart): Part | undefined => {
  const own: unknown = json.get(part.key)
  const wanted = changed(own, part.type, part.changes)
  return JSON.stringify(wanted) === JSON.stringify(own) ? undefined : { [part.key]: wanted }
}

const withChanges = (json: Metadata, changes: Part): Tokenizer =>
  Tokenizer.fromString(JSON.stringify({ ...Object.fromEntries(json), ...changes }))

/** The added tokens without special ones that the model has no row for, as Gemma's of images. */
const addedWithin = (json: Metadata, rows: number): Part => {
  const added: unknown = json.get("added_tokens")
  const hasRow = (token: unknown) =>
    !isPart(token) || token.special !== true || Number(token.id) < rows
  return Array.isArray(added) ? { added_tokens: added.filter(hasRow) } : {}
}

/** The tokenizer as the class builds it, for the rows of the model. */
const classTokenizer = (folder: string): Tokenizer => {
  let parsed: Metadata | undefined
  // up to 40 MB, of which most folders need nothing
  const json = () => (parsed ??= tokenizerJson(folder))
  const part = changedPart(classIn(folder))
  const changes = part && classChanges(json(), part)
  const tokenizer = changes
    ? withChanges(json(), changes)
    : Tokenizer.fromFile(join(folder, tokenizerFile))
  const rows: unknown = readJson(folder, "config.json").get("vocab_size")
  return typeof rows === "number" && tokenizer.getVocabSize(true) > rows
    ? withChanges(json(), { ...changes, ...addedWithin(json(), rows) })
    : tokenizer
}

const lowerCase = (tokenizer: Tokenizer): void => {
  const own = tokenizer.getNormalizer()
  tokenizer.setNormalizer(sequenceNormalizer(own ? [lowercase(), own] : [lowercase()]))
}

const sentenceConfig = "sentence_bert_config.json"

/** Whether sentence-transformers puts texts into lower case before all else. */
const isLowerCased = (folder: string): boolean =>
  existsSync(join(folder, sentenceConfig)) &&
  (readJson(folder, sentenceConfig).get("do_lower_case") as unknown) === true &&
  isSavedAsItsKind(folder)

/**
 * Whether texts are put into lower case whatever tokenizer.json says: SigLIP was trained on such,
 * and of its second version the published files leave that to the caller.
 */
const needsLowerCase = (folder: string): boolean => {
  const family: unknown = readJson(folder, "config.json").get("model_type")
  return family === "siglip" || family === "siglip2" || isLowerCased(folder)
}

/** Loads the tokenizer of an encoder's folder. */
export const loadEncoderTokenizer = (folder: string): Tokenizer => {
  const tokenizer = classTokenizer(folder)
  // the file may enable padding to a fixed length and silent truncation
  tokenizer.disablePadding()
  tokenizer.disableTruncation()
  if (needsLowerCase(folder)) lowerCase(tokenizer)
  return tokenizer
}
