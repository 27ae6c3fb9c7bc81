import { existsSync } from "node:fs"
import { join } from "node:path"
import { lowercase, sequenceNormalizer, Tokenizer } from "tokenizers"
import { type Metadata, textOr } from "../weights/gguf-metadata.ts"
import { readJson } from "../weights/json-file.ts"

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

/**
 * SigLIP was trained on texts in lower case; of its second version the published files leave that
 * to the caller.
 */
const lowerCase = (tokenizer: Tokenizer): void => {
  const own = tokenizer.getNormalizer()
  tokenizer.setNormalizer(sequenceNormalizer(own ? [lowercase(), own] : [lowercase()]))
}

/** Loads the tokenizer of an encoder's folder. */
export const loadEncoderTokenizer = (folder: string): Tokenizer => {
  const tokenizer = Tokenizer.fromFile(join(folder, "tokenizer.json"))
  // the file may enable padding to a fixed length and silent truncation
  tokenizer.disablePadding()
  tokenizer.disableTruncation()
  const family: unknown = readJson(folder, "config.json").get("model_type")
  if (family === "siglip" || family === "siglip2") lowerCase(tokenizer)
  return tokenizer
}
