import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, Result } from "effect"
import { afterAll, expect, test } from "vitest"
import { resolve, Tokens } from "../core/tokens.ts"
import { assemble } from "../runtime/boot/assemble.ts"
import { loadConfig } from "../runtime/config/load.ts"
import { parseSourceUrl } from "../runtime/services/model-files/sources/source-url.ts"
import { fakeLog } from "../testing/index.ts"
import { encoderShapes } from "./encoder-shapes.ts"
import { readByEngine } from "./encoders-page.ts"
import { hearingShapes } from "./hearing-page.ts"
import { imageShapes } from "./images-page.ts"
import { modelShapes } from "./model-shapes.ts"
import {
  bytesInFile,
  figuresOf,
  memoryLine,
  modelFiles,
  modelsPage,
  weightsOf,
} from "./models-page.ts"
import { readModel, readyMadeFiles } from "./ready-made.ts"
import { sightShapes } from "./sight-page.ts"

const folder = mkdtempSync(join(tmpdir(), "rakit-ready-made-"))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

test("docs/models.md and the lines about memory are what the sources say (npm run docs)", () => {
  expect(readFileSync(new URL("./models.md", import.meta.url), "utf8")).toBe(modelsPage())
  for (const file of readyMadeFiles) expect(readModel(file).text).toContain(`${memoryLine(file)}\n`)
})

test("every ready-made model has a shape, a licence and one source of a hub", () => {
  expect(
    [modelShapes, encoderShapes, imageShapes, sightShapes, hearingShapes]
      .flatMap((shapes) => Object.keys(shapes))
      .map((name) => `${name}.yaml`)
      .sort(),
  ).toEqual(readyMadeFiles)
  for (const file of readyMadeFiles) {
    const { models, entry, name, licence, how } = readModel(file)
    expect([file, models.length, name, licence, how]).not.toContain("")
    expect(`${entry.id}.yaml`).toBe(file)
    const sources = entry.sources.map(({ url }) => parseSourceUrl(url))
    expect(sources.map((source) => Result.isSuccess(source) && source.success.scheme)).toEqual([
      "hf",
    ])
  }
})

test("the shapes give the published files' sizes", () => {
  for (const file of modelFiles) {
    const { shape, kind } = figuresOf(file)
    const rest = shape.fileBytes - bytesInFile(weightsOf(shape, kind))
    // vocabulary, merges and norms: at most some 16 MB
    expect([file, rest > -1e6 && rest < 25e6, rest]).toEqual([file, true, rest])
  }
})

test("the engine reads the published configurations of embedding and rerank models", () => {
  expect(readByEngine("multilingual-e5-small.yaml")).toMatchObject({
    window: 512,
    vectors: "384",
    pooling: "mean",
  })
  expect(readByEngine("multilingual-e5-base.yaml")).toMatchObject({ window: 512, vectors: "768" })
  expect(readByEngine("gte-modernbert-base.yaml")).toMatchObject({ window: 2048, pooling: "cls" })
  expect(readByEngine("qwen3-embedding-0.6b.yaml")).toMatchObject({
    vectors: "1,024, and prefixes",
    pooling: "lasttoken",
    instructionTemplate: "Instruct: {instruction}\nQuery:",
  })
  for (const file of ["clip-vit-large-patch14.yaml", "siglip2-base.yaml"])
    expect(readByEngine(file)).toMatchObject({ vectors: "768", takesImages: true })
  for (const file of ["bge-reranker-v2-m3", "ms-marco-minilm-l6", "gte-reranker-modernbert-base"])
    expect(readByEngine(`${file}.yaml`).vectors).toBe("scores, cross-encoder")
  expect(readByEngine("qwen3-reranker-0.6b.yaml").window).toBe(40_960)
})

test("all of them are fine in one deployment, by name, without their files", async () => {
  const config = join(folder, "rakit.yaml")
  const included = readyMadeFiles.map((file) => `  - models/${file}\n`).join("")
  writeFileSync(
    config,
    `dataDir: ${folder}/data\nplugins: { backend-onnx: {} }\ninclude:\n${included}`,
  )
  const { container } = await Effect.runPromise(
    Effect.scoped(assemble(loadConfig(config, {}), "command", fakeLog())),
  )
  const { entries } = resolve(container, Tokens.catalogue)
  expect(entries.map(({ id }) => `${id}.yaml`)).toEqual(readyMadeFiles)
  expect(
    entries.filter(({ maxOutputTokens: most, contextTokens }) => most > contextTokens),
  ).toEqual([])
})
