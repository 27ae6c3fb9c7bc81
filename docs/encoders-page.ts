import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { folderConfig } from "../plugins/backend-onnx/architectures/folder-config.ts"
import { longestWindow } from "../plugins/backend-onnx/encoding/embed-job.ts"
import { folderEncoder, isClassifierFolder } from "../plugins/backend-onnx/encoding/families.ts"
import { promptsIn } from "../plugins/backend-onnx/encoding/prompts.ts"
import { hasVisionTower, visionConfig } from "../plugins/backend-onnx/vision/vision-config.ts"
import { encoderShapes } from "./encoder-shapes.ts"
import { count, gigabytes, hubOf, readModel, readyMadeFiles } from "./ready-made.ts"
import { table } from "./table.ts"

/** The files of embedding and rerank models in config/models. */
export const encoderFiles: readonly string[] = readyMadeFiles.filter((file) =>
  ["embed", "rerank"].includes(readModel(file).entry.task),
)

const shapeOf = (file: string) => encoderShapes[file.replace(/\.yaml$/, "")]!

/** Runs `read` on a folder with a model's files that are not its weights. */
const inFolder = <A>(file: string, read: (folder: string) => A): A => {
  const folder = mkdtempSync(join(tmpdir(), "rakit-encoder-"))
  try {
    const { config, files = {} } = shapeOf(file)
    for (const [name, json] of Object.entries({ "config.json": config, ...files })) {
      mkdirSync(dirname(join(folder, name)), { recursive: true })
      writeFileSync(join(folder, name), JSON.stringify(json))
    }
    return read(folder)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** What the engine reads of a model's files: the tokens of a window, and what comes of a text. */
export const readByEngine = (file: string) =>
  inFolder(file, (folder) => {
    const { task, options } = readModel(file).entry
    if (task === "rerank" && !isClassifierFolder(folder))
      return { window: folderConfig(folder).contextTokens, vectors: "scores, yes or no" }
    const { head, config } = folderEncoder(folder, options)
    const window = Math.min(config.maxTokens, longestWindow)
    if (head.type === "score") return { window, vectors: "scores, cross-encoder" }
    const vision = hasVisionTower(folder) ? visionConfig(folder) : undefined
    if (vision && vision.width !== head.width) throw new Error(`${file}: towers of two widths`)
    const pooling = head.pooling.join() || "its own"
    return {
      window,
      vectors: `${count(head.width)}${head.isMatryoshka ? ", and prefixes" : ""}`,
      pooling,
      instructionTemplate: promptsIn(folder).instructionTemplate,
      takesImages: vision !== undefined,
    }
  })

/** Matrices in blocks of 32 with a scale each, tables with one for each row. */
const figuresOf = (file: string) => {
  const { parameters, numberBytes } = shapeOf(file)
  const { matrices, tables } = parameters
  return { download: (matrices + tables) * numberBytes, weights: matrices * 1.125 + tables }
}

export const encoderMemoryLine = (file: string): string =>
  `# Memory: ${gigabytes(figuresOf(file).weights)} of weights (int8) in each engine.`

const row = (file: string): readonly string[] => {
  const { entry, name, licence } = readModel(file)
  const { download, weights } = figuresOf(file)
  const { window, vectors } = readByEngine(file)
  return [
    `[${entry.id}](../config/models/${file})`,
    `${name}: ${hubOf(entry).link}`,
    licence,
    entry.description,
    vectors,
    count(window),
    gigabytes(download),
    gigabytes(weights),
  ]
}

/** The section of docs/models.md about models that don't chat. */
export const encodersSection = (): string => `## Embeddings and rerankers

${table(["include", "model", "licence", "for", "dimensions", "tokens at once", "download", "weights in memory"], encoderFiles.map(row))}

They are read from the publishers' safetensors, none of them gated, and kept in 8 bits (\`precision: int8\`). What is longer than a model reads at once is read in windows, up to the entry's \`limits.contextTokens\`. Each engine has the weights in memory: small models have three, those of more than 40 million parameters in their layers one, or what \`instances\` says. Those that take images need \`price: {image: ..}\` where calls are billed. Vectors are mapped into 2,048 dimensions, and a shorter \`dimensions\` of those with prefixes is the model's own.
`
