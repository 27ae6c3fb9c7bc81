import { kvTokenBytes } from "../plugins/backend-onnx/sessions/kv-bank.ts"
import { count, gigabytes, hubOf, readModel, readyMadeFiles } from "./ready-made.ts"
import { table } from "./table.ts"

/** The sizes of a published chat model that sees, from its config.json; weights in millions. */
interface SightShape {
  readonly layers: number
  readonly kvHeads: number
  readonly headSize: number
  /** Matrices of decoder, head, tower and connector, which the engine keeps in 8 bits. */
  readonly matrices: number
  /** The embedding table, whose rows are read from the file. */
  readonly table: number
  /** Kernels and positions of the tower, in 32 bits. */
  readonly fine: number
  /** Tokens of a tile, and tiles at most. */
  readonly tileTokens: number
  readonly tiles: number
}

/** Computed from config.json, by the names of the files in config/models. */
export const sightShapes: Readonly<Record<string, SightShape>> = {
  "smolvlm-256m": {
    ...{ layers: 30, kvHeads: 3, headSize: 64, tileTokens: 64, tiles: 17 },
    ...{ matrices: 226.6, table: 28.4, fine: 1.4 },
  },
  "smolvlm-500m": {
    ...{ layers: 32, kvHeads: 5, headSize: 64, tileTokens: 64, tiles: 17 },
    ...{ matrices: 458.6, table: 47.3, fine: 1.4 },
  },
  "qwen2-vl-2b": {
    ...{ layers: 28, kvHeads: 2, headSize: 128, tileTokens: 768, tiles: 1 },
    ...{ matrices: 2208, table: 0, fine: 0.3 },
  },
  "qwen2.5-vl-7b": {
    ...{ layers: 28, kvHeads: 4, headSize: 128, tileTokens: 768, tiles: 1 },
    ...{ matrices: 7747, table: 545, fine: 0.3 },
  },
}

const sees = (file: string): boolean => {
  const { entry } = readModel(file)
  return entry.task === "chat" && /safetensors/.test(entry.sources[0]!.url)
}

/** The files of chat models in config/models that see. */
export const sightFiles: readonly string[] = readyMadeFiles.filter(sees)

const million = 1e6
const scalesOfBlock = 4 / 32

const figuresOf = (file: string) => {
  const shape = sightShapes[file.replace(/\.yaml$/, "")]!
  const { matrices, table: rows, fine, tileTokens, tiles } = shape
  return {
    download: 2 * (matrices + rows + fine) * million,
    weights: (matrices * (1 + scalesOfBlock) + 4 * fine) * million,
    token: kvTokenBytes(shape),
    ...{ tileTokens, tiles },
  }
}

export const sightMemoryLine = (file: string): string => {
  const { weights, token, tileTokens, tiles } = figuresOf(file)
  return `# Memory: ${gigabytes(weights)} of weights (int8), ${Math.round(token / 1000)} kB of keys and values a token; an image is up to ${count(tileTokens * tiles)} tokens, ${Math.round((tileTokens * tiles * token) / million)} MB.`
}

const row = (file: string): readonly string[] => {
  const { entry, name, licence } = readModel(file)
  const { download, weights, token, tileTokens, tiles } = figuresOf(file)
  return [
    `[${entry.id}](../config/models/${file})`,
    `${name}: ${hubOf(entry).link}`,
    licence,
    gigabytes(download),
    count(entry.limits.contextTokens),
    gigabytes(weights),
    `${Math.round(token / 1000)} kB`,
    `${tileTokens} a tile, ${count(tileTokens * tiles)} at most`,
  ]
}

export const sightSection = (): string => `## Chats with images

${table(["include", "model", "licence", "download", "window", "weights in memory", "keys and values of a token", "tokens of an image"], sightFiles.map(row))}

They are read from the publisher's safetensors, not gated, in 8 bits. None of them has run here, where no hub can be reached: the families are checked against transformers on tiny random checkpoints ([backend-onnx](../plugins/backend-onnx/README.md#images-in-chats)). Without any further download the starter's chat models see drawings, icons and emoji ([model-smollm2-vision](../plugins/model-smollm2-vision), 14.5 MB).
`
