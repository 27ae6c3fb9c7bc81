import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, describe, expect, test } from "vitest"
import { changedEncoder } from "../testing/changed-encoder.ts"
import { encoderFolder, towerFolder } from "../testing/fixtures.ts"
import { folderEncoder } from "./families.ts"

const root = mkdtempSync(join(tmpdir(), "rakit-sentence-files-"))
afterAll(() => rmSync(root, { recursive: true, force: true }))

type Changes = Parameters<typeof changedEncoder>[2]

const changed = (name: string, changes: Changes) =>
  changedEncoder(root, encoderFolder(name), changes)

const stock = "sentence_transformers.models."
const transformer = { type: `${stock}Transformer`, path: "" }
const pooling = { type: `${stock}Pooling`, path: "1_Pooling" }

/** What sentence-transformers stores of a model that isn't read for the states of its tokens. */
const text = (method: string, method_output_name: unknown) => ({
  "sentence_bert_config.json": { modality_config: { text: { method, method_output_name } } },
})

describe("an embedder is refused, by file and reason, whose", () => {
  const cases: readonly (readonly [string, string, Changes, string])[] = [
    [
      "part is another library's, though it is called as a stock one",
      "roberta",
      { "modules.json": [transformer, pooling, { type: "pylate.models.Dense.Dense", path: "2" }] },
      "modules.json: its part 'pylate.models.Dense.Dense' is none of sentence-transformers",
    ],
    [
      "parts have no pooling among them",
      "bert",
      { "modules.json": [transformer] },
      "modules.json: it has no part 'Pooling', so no file says how its states become a vector",
    ],
    [
      "parts have two poolings among them",
      "bert",
      { "modules.json": [transformer, pooling, pooling] },
      "modules.json: it has 2 parts 'Pooling'",
    ],
    [
      "pooling has no file",
      "bert",
      { "1_Pooling/config.json": undefined },
      "1_Pooling/config.json: it is missing",
    ],
    [
      "states are those of another output",
      "bert",
      text("forward", "pooler_output"),
      "sentence_bert_config.json: 'modality_config' reads 'pooler_output' of 'forward' for texts",
    ],
    [
      "states are those of another method",
      "bert",
      text("get_text_features", "last_hidden_state"),
      "sentence_bert_config.json: 'modality_config' reads 'last_hidden_state' of 'get_text_features'",
    ],
    [
      "texts are read as messages",
      "bert",
      { "sentence_bert_config.json": { modality_config: { message: {} } } },
      "sentence_bert_config.json: 'modality_config' has no 'text'",
    ],
    [
      "states have another name",
      "bert",
      { "sentence_bert_config.json": { module_output_name: "scores" } },
      "sentence_bert_config.json: 'module_output_name' is 'scores'",
    ],
    [
      "model makes several vectors",
      "bert",
      { "config_sentence_transformers.json": { model_type: "SparseEncoder" } },
      "config_sentence_transformers.json: 'model_type' is 'SparseEncoder'",
    ],
    [
      "dense layer has another output",
      "roberta",
      { "2_Dense/config.json": { module_output_name: "token_embeddings" } },
      "2_Dense/config.json: 'module_output_name' is 'token_embeddings'",
    ],
    [
      "dense layer has an activation of its own",
      "roberta",
      { "2_Dense/config.json": { activation_function: "mine.Tanh" } },
      "2_Dense/config.json: its activation is 'mine.Tanh'; this backend runs torch's Identity",
    ],
  ]
  test.each(cases)("%s", (_, name, changes, reason) => {
    const path = changed(name, changes)
    expect(() => folderEncoder(path)).toThrow(`${path}/${reason}`)
  })
})

describe("is accepted as before:", () => {
  test.each<readonly [string, Changes]>([
    [
      "files of sentence-transformers 2",
      {
        "modules.json": [transformer, pooling],
        "sentence_bert_config.json": undefined,
        "config_sentence_transformers.json": { __version__: { sentence_transformers: "2.0.0" } },
      },
    ],
    ["no list of parts", { "modules.json": undefined }],
    ["an output without a name", { "sentence_bert_config.json": { module_output_name: null } }],
    [
      "the name of its class",
      { "config_sentence_transformers.json": { model_type: "SentenceTransformer" } },
    ],
  ])("%s", (_, changes) => {
    expect(folderEncoder(changed("bert", changes)).head).toMatchObject({
      pooling: ["mean"],
      width: 32,
    })
  })

  test("parts without a pooling, or without its file, where the option says it", () => {
    const pooled = (changes: Changes) =>
      folderEncoder(changed("bert", changes), { pooling: "cls" }).head
    expect(pooled({ "modules.json": [transformer] })).toMatchObject({ pooling: ["cls"] })
    expect(pooled({ "1_Pooling/config.json": undefined })).toMatchObject({ pooling: ["cls"] })
  })

  test.each(["clip", "siglip2"])("%s, which pools in its own way", (name) => {
    const path = changedEncoder(root, towerFolder(name), {
      "modules.json": [transformer],
      "sentence_bert_config.json": {
        modality_config: {
          text: { method: "get_text_features", method_output_name: "pooler_output" },
        },
        module_output_name: "sentence_embedding",
      },
    })
    expect(folderEncoder(path).head).toEqual(folderEncoder(towerFolder(name)).head)
  })

  test("a classifier that sentence-transformers 6 stored", () => {
    const path = changed("bert-classifier", {
      "modules.json": [transformer],
      "config_sentence_transformers.json": { model_type: "CrossEncoder" },
      "sentence_bert_config.json": {
        modality_config: { text: { method: "forward", method_output_name: "logits" } },
        module_output_name: "scores",
      },
    })
    expect(folderEncoder(path).head).toEqual({ type: "score" })
  })
})

test.each(["roberta", "distilbert", "camembert", "albert", "xlm-roberta", "xlnet"])(
  "the window is that of sentence_%s_config.json where the newer file is not there",
  (name) => {
    const older = { [`sentence_${name}_config.json`]: { max_seq_length: 12 } }
    const path = changed("bert", { "sentence_bert_config.json": undefined, ...older })
    expect(folderEncoder(path).config.maxTokens).toBe(12)
    const newer = { "sentence_bert_config.json": { max_seq_length: 20 } }
    expect(folderEncoder(changed("bert", { ...newer, ...older })).config.maxTokens).toBe(20)
  },
)
