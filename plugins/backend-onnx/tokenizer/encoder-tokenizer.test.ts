import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, expect, test } from "vitest"
import { encoderFolder } from "../testing/fixtures.ts"
import { secondTypeIn } from "./encoder-tokenizer.ts"

const root = mkdtempSync(join(tmpdir(), "rakit-tokenizers-"))
afterAll(() => rmSync(root, { recursive: true, force: true }))

type Changes = Readonly<Record<string, unknown>>

/** A copy of a tiny encoder, with some keys of its files changed. */
const folderOf = (from: string, files: Readonly<Record<string, Changes>>): string => {
  const path = mkdtempSync(join(root, "model-"))
  cpSync(encoderFolder(from), path, { recursive: true })
  for (const [name, changes] of Object.entries(files)) {
    const own = JSON.parse(readFileSync(join(path, name), "utf8")) as Changes
    writeFileSync(join(path, name), JSON.stringify({ ...own, ...changes }))
  }
  return path
}

test.each([
  ["TokenizersBackend", undefined, undefined],
  ["BertTokenizer", undefined, 1],
  ["BertTokenizerFast", ["input_ids", "token_type_ids"], 1],
  ["BertTokenizerFast", ["input_ids"], 0],
  ["XLMRobertaTokenizer", undefined, 0],
  ["XLMRobertaTokenizer", ["input_ids", "token_type_ids"], undefined],
])(
  "a tokenizer of the class %s with the inputs %s fixes the second type: %s",
  (name, inputs, type) => {
    const changes = { tokenizer_class: name, model_input_names: inputs }
    const path = folderOf("bert-classifier", { "tokenizer_config.json": changes })
    expect(secondTypeIn(path)).toBe(type)
  },
)

test("a class that transformers leaves aside says nothing of the second type", () => {
  const path = folderOf("modernbert-classifier", {
    "tokenizer_config.json": { tokenizer_class: "BertTokenizer", model_input_names: undefined },
  })
  expect(secondTypeIn(path)).toBeUndefined()
})
