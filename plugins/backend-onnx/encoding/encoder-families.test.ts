import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Tokenizer } from "tokenizers"
import { afterAll, describe, expect, test } from "vitest"
import { modelNameIn } from "../architectures/folder-json.ts"
import { embedTexts } from "../chat-format/embed-texts.ts"
import { encoderFolder } from "../testing/fixtures.ts"
import {
  cosine,
  expectedEncoder,
  openEncoder,
  outputsOf,
  unmapped,
} from "../testing/open-encoder.ts"
import { ModelFileError } from "../weights/model-file-error.ts"
import { folderEncoder } from "./families.ts"

const root = mkdtempSync(join(tmpdir(), "rakit-encoders-"))
afterAll(() => rmSync(root, { recursive: true, force: true }))

const open = (path: string, options: Parameters<typeof openEncoder>[2] = {}) =>
  openEncoder(path, join(root, "graphs"), options)

test("the window is the shortest that any file names", () => {
  expect(folderEncoder(encoderFolder("bert")).config.maxTokens).toBe(64)
  expect(folderEncoder(encoderFolder("xlm-roberta")).config.maxTokens).toBe(80)
})

test("a name has what a header can have, as it is in the id of the vector space", () => {
  const name = (path: string) =>
    modelNameIn(
      new Map([
        ["_name_or_path", path],
        ["model_type", "bert"],
      ]),
    )
  expect(name("intfloat/multilingual-e5-small")).toBe("multilingual-e5-small")
  expect(name("home/me/")).toBe("bert")
  expect(name("a/größe 1\r\nX: y")).toBe("gr-e-1-X-y")
})

const idsOf = (ids: readonly number[]) => Int32Array.from(ids)

/** Families whose graphs differ: each graph costs the quick tests a tenth of a second. */
const isRounded = ["bert", "bert-int8", "modernbert", "qwen3-embedding"]

describe.each([
  "bert",
  "bert-int8",
  "xlm-roberta",
  "roberta",
  "modernbert",
  "qwen3-embedding",
  "gemma3-embedding",
])("the tiny %s", (name) => {
  const { texts, pooled } = expectedEncoder(name)

  test("makes the vectors of sentence-transformers, in company and alone", async () => {
    const engine = await open(encoderFolder(name))
    const inputs = texts!.map(({ ids }) => idsOf(ids))
    const together = await outputsOf(engine, inputs)
    const { width } = engine.info
    for (const [i, { vector }] of texts!.entries()) {
      expect(width).toBe(vector.length)
      expect(cosine(unmapped(together[i]!, width), vector)).toBeGreaterThan(1 - 1e-6)
      const [alone] = await outputsOf(engine, [inputs[i]!])
      const gap = Math.max(...alone!.map((value, at) => Math.abs(value - together[i]![at]!)))
      expect(gap).toBeLessThan(1e-5)
    }
    await engine.close()
  })

  test.each([
    ["", "ids"],
    ["Query für: ", "promptedIds"],
  ] as const)(
    "is given the tokens that transformers makes of '%s' and a text",
    async (prompt, ids) => {
      const tokenizer = Tokenizer.fromFile(join(encoderFolder(name), "tokenizer.json"))
      const found = await embedTexts(tokenizer, {
        texts: texts!.map(({ text }) => text),
        instruction: prompt,
        truncate: "END",
        maxTokens: 1_000,
        window: 1_000,
      })
      expect(
        "texts" in found && found.texts.map(({ windows }) => windows.map((one) => [...one.ids])),
      ).toEqual(texts!.map((text) => [text[ids]]))
    },
  )

  test.skipIf(!isRounded.includes(name))("loses little in 8 bits", async () => {
    const engine = await open(encoderFolder(name), { precision: "int8" })
    const vectors = await outputsOf(
      engine,
      texts!.map(({ ids }) => idsOf(ids)),
    )
    for (const [i, { vector }] of texts!.entries())
      expect(cosine(unmapped(vectors[i]!, vector.length), vector)).toBeGreaterThan(0.995)
    await engine.close()
  })

  test.each(Object.keys(pooled!))("pools by %s as sentence-transformers does", async (mode) => {
    const path = join(root, `${name}-${mode}`)
    cpSync(encoderFolder(name), path, { recursive: true })
    mkdirSync(join(path, "1_Pooling"), { recursive: true })
    writeFileSync(join(path, "1_Pooling/config.json"), JSON.stringify({ pooling_mode: mode }))
    const engine = await open(path)
    const vectors = await outputsOf(
      engine,
      texts!.map(({ ids }) => idsOf(ids)),
    )
    for (const [i, vector] of pooled![mode]!.entries())
      expect(cosine(unmapped(vectors[i]!, vector.length), vector)).toBeGreaterThan(1 - 1e-6)
    await engine.close()
  })
})

describe.each(["bert", "xlm-roberta", "modernbert"])("the tiny %s classifier", (name) => {
  test("makes the logits of transformers, in company and alone", async () => {
    const { pairs } = expectedEncoder(`${name}-classifier`)
    const engine = await open(encoderFolder(`${name}-classifier`))
    expect(engine.info).toMatchObject({ output: "score", width: 1 })
    const inputs = pairs!.map(({ ids, secondFrom }) => ({ ids: idsOf(ids), secondFrom }))
    const together = await outputsOf(engine, inputs)
    for (const [i, { logit }] of pairs!.entries()) {
      expect(Math.abs(together[i]![0]! - logit)).toBeLessThan(1e-5)
      const [alone] = await outputsOf(engine, [inputs[i]!])
      expect(Math.abs(alone![0]! - logit)).toBeLessThan(1e-5)
    }
    await engine.close()
  })
})

describe("what an entry's options say", () => {
  const { texts, pooled } = expectedEncoder("modernbert")
  const inputs = texts!.map(({ ids }) => idsOf(ids))

  test.each([
    ["cls", "cls"],
    ["mean", "mean"],
    ["last", "lasttoken"],
  ] as const)("pooling %s comes before the files'", async (pooling, mode) => {
    const engine = await open(encoderFolder("modernbert"), { pooling })
    const vectors = await outputsOf(engine, inputs)
    for (const [i, vector] of pooled![mode]!.entries())
      expect(cosine(unmapped(vectors[i]!, vector.length), vector)).toBeGreaterThan(1 - 1e-6)
    await engine.close()
  })

  const isOwnPrefix = async (path: string, matryoshka?: boolean) => {
    const engine = await open(path, { matryoshka })
    const vectors = await outputsOf(engine, inputs)
    await engine.close()
    const cosines = texts!.flatMap(({ vector }, i) =>
      [4, 8, 16, 31, 32].map((size) => cosine(vectors[i]!.slice(0, size), vector.slice(0, size))),
    )
    return { map: engine.info.map, least: Math.min(...cosines), vectors }
  }

  test("matryoshka: a prefix is the model's own, and cosines of whole vectors stay", async () => {
    const { map, least, vectors } = await isOwnPrefix(encoderFolder("modernbert"), true)
    expect(map).toBe("m1")
    expect(least).toBeGreaterThan(1 - 1e-6)
    for (const vector of vectors) expect(Math.hypot(...vector)).toBeCloseTo(1, 5)
    expect(cosine(vectors[0]!, vectors[1]!)).toBeCloseTo(
      cosine(texts![0]!.vector, texts![1]!.vector),
      5,
    )
  })

  test("so where config.json names its dimensions, unless the option denies it; else not", async () => {
    const path = join(root, "matryoshka")
    cpSync(encoderFolder("modernbert"), path, { recursive: true })
    changeJson(path, { matryoshka_dimensions: [32, 16] })
    expect((await isOwnPrefix(path)).least).toBeGreaterThan(1 - 1e-6)
    expect((await isOwnPrefix(path, false)).least).toBeLessThan(0.9)
    expect(await isOwnPrefix(encoderFolder("modernbert"))).toMatchObject({ map: "r1" })
  })
})

test.each(["modernbert", "modernbert-classifier"])(
  "%s reads so much at once as its attention has memory for, though its window is longer",
  async (name) => {
    const path = join(root, `${name}-long`)
    cpSync(encoderFolder(name), path, { recursive: true })
    changeJson(path, { max_position_embeddings: 8192 })
    rmSync(join(path, "sentence_bert_config.json"), { force: true })
    expect(folderEncoder(path).config.maxTokens).toBe(8192)
    const engine = await open(path)
    expect(engine.info.maxTokens).toBe(2048)
    await engine.close()
  },
)

const changeJson = (folder: string, change: object, name = "config.json") => {
  const path = join(folder, name)
  const json: object = JSON.parse(readFileSync(path, "utf8"))
  writeFileSync(path, JSON.stringify(Array.isArray(json) ? change : { ...json, ...change }))
}

describe("is refused, by file and reason", () => {
  const cases: readonly (readonly [string, string, (folder: string) => void, RegExp])[] = [
    [
      "another family",
      "bert",
      (folder) => changeJson(folder, { model_type: "t5" }),
      /config.json: 'model_type' is 't5'; this backend runs bert, roberta, xlm-roberta/,
    ],
    [
      "another activation",
      "bert",
      (folder) => changeJson(folder, { hidden_act: "swish" }),
      /config.json: its activation is 'swish'/,
    ],
    [
      "other positions",
      "bert",
      (folder) => changeJson(folder, { position_embedding_type: "relative_key" }),
      /'position_embedding_type' is 'relative_key'/,
    ],
    [
      "no positions behind the padding",
      "xlm-roberta",
      (folder) => changeJson(folder, { max_position_embeddings: 2 }),
      /2 positions, of which the first 2 are unused/,
    ],
    [
      "heads that don't fit",
      "modernbert",
      (folder) => changeJson(folder, { num_attention_heads: 5 }),
      /5 heads don't fit a width of 32/,
    ],
    [
      "layers of another kind",
      "modernbert",
      (folder) => changeJson(folder, { layer_types: ["a", "b", "c", "d"] }),
      /a layer of it is 'a'/,
    ],
    [
      "several labels",
      "bert-classifier",
      (folder) => changeJson(folder, { id2label: { 0: "no", 1: "yes" } }),
      /config.json: it is a classifier of 2 labels/,
    ],
    [
      "another size than its tensors",
      "bert",
      (folder) => changeJson(folder, { intermediate_size: 96 }),
      /intermediate.dense.weight' is 48 x 32, its configuration asks for 96 x 32/,
    ],
    [
      "a missing tensor",
      "modernbert",
      (folder) => changeJson(folder, { num_hidden_layers: 5 }),
      /the tensor 'layers.4.attn_norm.weight' is missing/,
    ],
    [
      "a prompt that the pooling leaves out",
      "bert",
      (folder) => changeJson(folder, { include_prompt: false }, "1_Pooling/config.json"),
      /1_Pooling.config.json: it leaves the prompt out/,
    ],
    [
      "a part outside its folder",
      "roberta",
      (folder) => changeJson(folder, [{ type: "a.Dense", path: "../../etc" }], "modules.json"),
      /modules.json: its part 'a.Dense' is in '..\/..\/etc', which is no folder/,
    ],
    [
      "a dense layer of another width",
      "roberta",
      (folder) => changeJson(folder, { in_features: 32 }, "2_Dense/config.json"),
      /2_Dense.config.json: it takes 32 numbers, and is given 64/,
    ],
    [
      "a dense layer without weights",
      "roberta",
      (folder) => rmSync(join(folder, "4_Dense/model.safetensors")),
      /4_Dense: it has neither model.safetensors nor/,
    ],
  ]
  test.each(cases)("%s", async (name, from, change, reason) => {
    const path = join(root, name)
    cpSync(encoderFolder(from), path, { recursive: true })
    change(path)
    const error: unknown = await open(path).then(
      () => undefined,
      (cause: unknown) => cause,
    )
    expect(error).toBeInstanceOf(ModelFileError)
    expect((error as Error).message).toMatch(reason)
    expect((error as Error).message.startsWith(path)).toBe(true)
  })
})
