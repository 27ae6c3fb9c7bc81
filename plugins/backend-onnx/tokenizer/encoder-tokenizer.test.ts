import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, expect, test } from "vitest"
import { encoderFolder } from "../testing/fixtures.ts"
import { loadEncoderTokenizer, secondTypeIn } from "./encoder-tokenizer.ts"

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

/** The tokens of a text, without the special ones. */
const tokensOf = async (path: string, text: string): Promise<readonly string[]> =>
  (await loadEncoderTokenizer(path).encode(text, null, { addSpecialTokens: false })).getTokens()

test("a special token that the model has no row for is left out, and its text is text", async () => {
  const json = JSON.parse(readFileSync(join(encoderFolder("bert"), "tokenizer.json"), "utf8"))
  const rows = loadEncoderTokenizer(encoderFolder("bert")).getVocabSize(true)
  const image = { ...json.added_tokens[0], id: rows, content: "<image>", special: true }
  const files = (token: object) => ({
    "tokenizer.json": { added_tokens: [...json.added_tokens, token] },
    "config.json": { vocab_size: rows },
  })
  const tokenizer = loadEncoderTokenizer(folderOf("bert", files(image)))
  expect(tokenizer.getVocabSize(true)).toBe(rows)
  const ids = (await tokenizer.encode("a<image>b", null)).getIds()
  expect(Math.max(...ids)).toBeLessThan(rows)
  // opening the model refuses what is left
  const other = loadEncoderTokenizer(folderOf("bert", files({ ...image, special: false })))
  expect(other.getVocabSize(true)).toBe(rows + 1)
})

const cased = { type: "BertNormalizer", clean_text: true, handle_chinese_chars: true }
const keepsCase = { normalizer: { ...cased, strip_accents: null, lowercase: false } }
const lower = ["the", "sea"]
const upper = ["[UNK]", "[UNK]"]

test.each([
  ["saved by sentence-transformers", "bert", "bert", {}, true],
  ["saved as a cross-encoder", "bert-classifier", "bert", { model_type: "CrossEncoder" }, true],
  [
    "saved as another model",
    "bert-classifier",
    "bert",
    { model_type: "SentenceTransformer" },
    false,
  ],
  ["without modules.json", "bert-classifier", undefined, { model_type: "CrossEncoder" }, false],
])("do_lower_case beside the modules of a folder %s", async (_, from, modules, saved, isLower) => {
  const path = folderOf(from, { "tokenizer.json": keepsCase })
  if (modules) cpSync(join(encoderFolder(modules), "modules.json"), join(path, "modules.json"))
  const write = (name: string, content: Changes) =>
    writeFileSync(join(path, name), JSON.stringify(content))
  write("config_sentence_transformers.json", saved)
  write("sentence_bert_config.json", { do_lower_case: false })
  expect(await tokensOf(path, "The SEA")).toEqual(upper)
  write("sentence_bert_config.json", { do_lower_case: true })
  expect(await tokensOf(path, "The SEA")).toEqual(isLower ? lower : upper)
})

const normalizerOf = (changes: Changes) => ({
  normalizer: { ...cased, strip_accents: null, lowercase: true, ...changes },
})

test.each([
  ["puts into lower case", { do_lower_case: true }, { lowercase: false }, "The SEA", "the sea"],
  ["keeps the case", { do_lower_case: false }, {}, "The sea", "The sea"],
  ["says nothing", {}, { lowercase: false }, "The sea", "The sea"],
  ["keeps accents", { strip_accents: false }, {}, "caf\u00e9", "caf\u00e9"],
  ["strips accents", { do_lower_case: false, strip_accents: true }, {}, "Caf\u00e9", "Cafe"],
  [
    "has accents as the case",
    { strip_accents: null },
    { strip_accents: false },
    "CAF\u00c9",
    "cafe",
  ],
  [
    "parts characters",
    { tokenize_chinese_chars: true },
    { handle_chinese_chars: false },
    "\u6771\u4eac",
    " \u6771  \u4eac ",
  ],
  ["parts no characters", { tokenize_chinese_chars: false }, {}, "\u6771\u4eac", "\u6771\u4eac"],
])("tokenizer_config.json of a BertTokenizer %s", (_, config, normalizer, text, expected) => {
  const found = ["BertTokenizer", "BertTokenizerFast", "TokenizersBackend"].map((name) => {
    const path = folderOf("bert", {
      "tokenizer.json": normalizerOf(normalizer),
      "tokenizer_config.json": { ...config, tokenizer_class: name },
    })
    return loadEncoderTokenizer(path).getNormalizer()!.normalizeString(text)
  })
  const own = folderOf("bert", { "tokenizer.json": normalizerOf(normalizer) })
  const unchanged = loadEncoderTokenizer(own).getNormalizer()!.normalizeString(text)
  expect(found).toEqual([expected, expected, unchanged])
})

const bytes = (space: boolean) => ({
  pre_tokenizer: {
    type: "ByteLevel",
    add_prefix_space: space,
    trim_offsets: true,
    use_regex: true,
  },
})

test.each([
  ["RobertaTokenizer", true, true],
  ["RobertaTokenizerFast", false, false],
  ["GPT2Tokenizer", true, true],
  ["GPT2TokenizerFast", false, false],
  ["TokenizersBackend", true, false],
  ["TokenizersBackend", false, true],
])("a %s with add_prefix_space: %s puts a space before texts: %s", async (name, wanted, spaced) => {
  const path = folderOf("roberta", {
    "tokenizer.json": bytes(!wanted),
    "tokenizer_config.json": { tokenizer_class: name, add_prefix_space: wanted },
  })
  const [first] = await tokensOf(path, "sea")
  expect(first!.startsWith("\u0120")).toBe(spaced)
})
