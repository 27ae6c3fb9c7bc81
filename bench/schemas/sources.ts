import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import type { Json } from "../../core/json.ts"
import {
  grammarVocabulary,
  type SharedVocabulary,
  sharedVocabulary,
} from "../../plugins/backend-onnx/grammar/grammar-vocabulary.ts"
import { ggufLanguage } from "../../plugins/backend-onnx/tokenizer/gguf-language.ts"
import { openGguf } from "../../plugins/backend-onnx/weights/gguf-file.ts"

export interface Named {
  readonly name: string
  readonly json: Json
}

/** All JSON files below a folder. */
export const jsonIn = (folder: string): readonly Named[] =>
  readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".json"))
    .sort()
    .map((name) => ({ name, json: JSON.parse(readFileSync(join(folder, name), "utf8")) as Json }))

/** The tokens of a chat model, from its GGUF file. */
export const vocabularyOf = (path: string): SharedVocabulary => {
  const file = openGguf(path)
  const { metadata } = file.header
  const size = (metadata.get("tokenizer.ggml.tokens") as readonly string[]).length
  const { vocabulary, endTokens } = ggufLanguage(metadata, size)
  return sharedVocabulary(grammarVocabulary(size, (id) => vocabulary.bytesOf(id), endTokens))
}
