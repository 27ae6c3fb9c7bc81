import { readFileSync } from "node:fs"
import { join } from "node:path"
import { Schema } from "effect"
import { bytesPerWeight } from "../plugins/backend-onnx/onnx/linear.ts"
import { kvTokenBytes } from "../plugins/backend-onnx/sessions/kv-bank.ts"
import { OnnxSettings } from "../plugins/backend-onnx/settings.ts"
import { ggmlTypes } from "../plugins/backend-onnx/weights/ggml-types.ts"
import { encoderFiles, encoderMemoryLine, encodersSection } from "./encoders-page.ts"
import { hearingFiles, hearingMemoryLine, hearingSection } from "./hearing-page.ts"
import { imageFiles, imageMemoryLine, imagesSection } from "./images-page.ts"
import { type ModelShape, modelShapes } from "./model-shapes.ts"
import { count, gigabytes, hubOf, readModel, readyMadeFiles } from "./ready-made.ts"
import { sightFiles, sightMemoryLine, sightSection } from "./sight-page.ts"
import { table } from "./table.ts"

/** The files of chat models in config/models that read texts only. */
export const modelFiles: readonly string[] = readyMadeFiles.filter(
  (file) => readModel(file).entry.task === "chat" && !sightFiles.includes(file),
)

interface Weights {
  readonly type: string
  readonly count: number
  readonly isEmbedding: boolean
}

/** The layers whose values and down projections llama.cpp keeps in more bits for Q4_K_M. */
const hasMoreBits = (layer: number, layers: number): boolean =>
  layer < Math.floor(layers / 8) ||
  layer >= Math.floor((7 * layers) / 8) ||
  (layer - Math.floor(layers / 8)) % 3 === 2

/** Rows that are no whole blocks of 256 get the next type with blocks of 32. */
const fitting = (type: string, columns: number): string =>
  columns % 256 === 0 ? type : ({ Q4_K: "Q5_0", Q6_K: "Q8_0" }[type] ?? type)

/** The matrices of a GGUF file, as llama.cpp quantizes this shape to Q8_0 or Q4_K_M. */
export const weightsOf = (shape: ModelShape, kind: string): readonly Weights[] => {
  const { layers, width, feedForward, heads, kvHeads, headSize, vocabulary, tiedHead } = shape
  const matrix = (type: string, rows: number, columns: number, isEmbedding = false): Weights => ({
    type: fitting(kind === "Q8_0" ? "Q8_0" : type, columns),
    count: rows * columns,
    isEmbedding,
  })
  const layer = (index: number): readonly Weights[] => {
    const better = hasMoreBits(index, layers) ? "Q6_K" : "Q4_K"
    const attention = shape.hasFusedAttention ? "Q5_K" : "Q4_K"
    return [
      matrix(attention, heads * headSize, width),
      matrix(attention, kvHeads * headSize, width),
      matrix(shape.hasFusedAttention ? "Q5_K" : better, kvHeads * headSize, width),
      matrix("Q4_K", width, heads * headSize),
      matrix("Q4_K", feedForward, width),
      matrix("Q4_K", feedForward, width),
      matrix(better, width, feedForward),
    ]
  }
  return [
    ...Array.from({ length: layers }, (_, index) => layer(index)).flat(),
    matrix("Q6_K", vocabulary, width),
    ...(tiedHead ? [] : [matrix("Q4_K", vocabulary, width, true)]),
  ]
}

const typeNamed = (name: string) => [...ggmlTypes.values()].find((type) => type.name === name)!

const sum = (numbers: readonly number[]): number => numbers.reduce((total, one) => total + one, 0)

/** What these matrices take in a file, without its vocabulary and norms. */
export const bytesInFile = (weights: readonly Weights[]): number =>
  sum(
    weights.map(({ type, count }) => {
      const { blockBytes, blockValues } = typeNamed(type)
      return (count / blockValues) * blockBytes
    }),
  )

const megabyte = 2 ** 20
const { kvMemoryMb } = Schema.decodeUnknownSync(OnnxSettings)({})
/** Code, vocabulary and buffers of a server, beside weights and keys and values. */
const restBytes = 250 * megabyte
const conversation = 4096

/** Figures of a model, by the engine's own sizes. */
export const figuresOf = (file: string) => {
  const { entry } = readModel(file)
  const shape = modelShapes[file.replace(/\.yaml$/, "")]!
  const kind = /Q\d\w*?(?=\.gguf)/i.exec(entry.sources[0]!.url)![0].toUpperCase()
  // rows of an embedding table that is not the head are read from the file
  const weights = sum(
    weightsOf(shape, kind).map(({ type, count, isEmbedding }) =>
      isEmbedding ? 0 : count * bytesPerWeight(typeNamed(type)),
    ),
  )
  const token = kvTokenBytes(shape)
  return {
    ...{ kind, shape, weights, token },
    fits: Math.floor((kvMemoryMb * megabyte) / token),
    ram: weights + restBytes + conversation * token,
  }
}

export const memoryLine = (file: string): string => {
  if (encoderFiles.includes(file)) return encoderMemoryLine(file)
  if (imageFiles.includes(file)) return imageMemoryLine(file)
  if (sightFiles.includes(file)) return sightMemoryLine(file)
  if (hearingFiles.includes(file)) return hearingMemoryLine(file)
  const { kind, weights, token, fits, ram } = figuresOf(file)
  return `# Memory: ${gigabytes(weights)} of weights (${kind}), ${Math.round(token / 1000)} kB of keys and values a token (${count(fits)} tokens in the default ${count(kvMemoryMb)} MB); ${gigabytes(ram)} with one conversation of ${count(conversation)} tokens.`
}

/** The file with the line about memory as it should be. */
export const withMemoryLine = (file: string): string =>
  readModel(file).text.replace(/^# Memory: .*$/m, memoryLine(file))

const row = (file: string): readonly string[] => {
  const { entry, name, licence, how } = readModel(file)
  const { shape, kind, weights, token, fits, ram } = figuresOf(file)
  const { link, path } = hubOf(entry)
  return [
    `[${entry.id}](../config/models/${file})`,
    `${name}: ${link}, ${path}`,
    `${licence}; ${how}`,
    kind,
    gigabytes(shape.fileBytes),
    count(entry.limits.contextTokens),
    gigabytes(weights),
    `${Math.round(token / 1000)} kB`,
    count(fits),
    gigabytes(ram),
  ]
}

const pageFile = join(import.meta.dirname, "models.md")
const keptFrom =
  "<!-- npm run docs keeps what follows: figures, by the commands that they name. -->"

/** What was measured, from its own heading on. */
const keptText = (): string => {
  const page = readFileSync(pageFile, "utf8")
  const at = page.indexOf(keptFrom)
  return at < 0 ? "" : page.slice(at + keptFrom.length).trim()
}

export const modelsPage = (): string => `# Ready-made models

Written by \`npm run docs\` from [config/models](../config/models); do not edit what stands above "Measured". A config file includes one by its name:

\`\`\`yaml
plugins: { backend-onnx: {}, endpoint-chat: {}, endpoint-models: {}, billing-free: {}, identity-static: { keys: [] } }
include:
  - models/qwen3-0.6b.yaml
  - { file: models/llama-3.2-1b.yaml, id: svc-lyt, price: { input: 1500, output: 6000 } }
\`\`\`

A name is looked up beside the config file, then in rakit's own config folder; \`./mine.yaml\` only beside it. A file holds \`models\`, as a config file does; of a file with one model \`id\`, \`tier\`, \`description\` and \`price\` may be set instead of its own. **None of these has a price**: where calls are billed, set one.

\`rakit models pull\` (or the first start) asks the hub what the branch has, and writes commit and digest into \`models.lock.yaml\` beside the config file, by which all later pulls are checked ([model-files](../runtime/services/model-files/README.md#the-lock-file)). A gated repository needs \`HF_TOKEN\`.

${table(["include", "file", "licence", "type", "download", "window", "weights in memory", "keys and values of a token", `tokens in ${count(kvMemoryMb)} MB`, `RAM, one conversation of ${count(conversation)} tokens`], modelFiles.map(row))}

Figures are computed from each model's shape by the sizes that the engine gives weights and keys and values (\`precision: auto\`), with 250 MB for everything else. Where the native kernels run (Linux x64 with AVX2 or better), keys and values take half of what stands here, and weights less: those of Q4_K by 23 %, of Q5_K by 38 %, of Q8_0 by 6 %. \`kvMemoryMb\` of backend-onnx bounds the keys and values of all running requests together, and so the window: a window that is longer than fits is served as far as it fits, and \`rakit check\` says so once the file is here. The prefix cache (\`prefixCacheMb\`) comes on top as it fills.

${sightSection()}
${hearingSection()}
${encodersSection()}
${imagesSection()}
${keptFrom}

${keptText()}
`
