// What int8 costs an encoder: its vectors, or the scores of a classifier, against fp32. `node
// --import tsx bench/encoder-precision.ts FOLDER [more folders ...]`
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Tokenizer } from "tokenizers"
import type { EncoderInput } from "../plugins/backend-onnx/encoding/embed-job.ts"
import { openEncoder, outputsOf } from "../plugins/backend-onnx/testing/open-encoder.ts"
import { printLoadAfter, printMachine } from "./measure/machine.ts"
import { spearman } from "./measure/rank-correlation.ts"
import { figure, printTable } from "./measure/table.ts"

const count = 400
const neighbours = 10
const home = join(import.meta.dirname, "..")

/** Sentences of this repository's documents, spread over all of them. */
const sentences = (): readonly string[] => {
  const files = [
    ...readdirSync(home),
    ...readdirSync(join(home, "docs")).map((name) => `docs/${name}`),
  ]
  const all = files
    .filter((name) => name.endsWith(".md"))
    .sort()
    .flatMap((name) => readFileSync(join(home, name), "utf8").split(/(?<=[.:])\s+|\n/))
    .map((text) => text.replace(/[`*|#[\]]/g, "").trim())
    .filter((text) => text.length >= 40 && text.length <= 400)
  return Array.from({ length: count }, (_, i) => all[Math.floor((i * all.length) / count)]!)
}

const tokenizerIn = (folder: string): Tokenizer => {
  const tokenizer = Tokenizer.fromFile(join(folder, "tokenizer.json"))
  tokenizer.disablePadding()
  tokenizer.disableTruncation()
  return tokenizer
}

/** Each sentence, or with the one behind it as a pair. */
const inputsOf = async (
  folder: string,
  pairs: boolean,
  maxTokens: number,
): Promise<readonly EncoderInput[]> => {
  const tokenizer = tokenizerIn(folder)
  const texts = sentences()
  const inputs: EncoderInput[] = []
  for (const [i, text] of texts.entries()) {
    const second = pairs ? texts[(i + (i % 2)) % count]! : null
    const encoding = await tokenizer.encode(text, second, { addSpecialTokens: true })
    const ids = Int32Array.from(encoding.getIds().slice(0, maxTokens))
    const at = encoding.getSequenceIds().indexOf(1)
    inputs.push(pairs ? { ids, secondFrom: at < 0 ? ids.length : at } : ids)
  }
  return inputs
}

const outputsIn = async (folder: string, graphs: string, precision: "fp32" | "int8") => {
  const engine = await openEncoder(folder, graphs, { precision })
  const pairs = engine.info.output === "score"
  const inputs = await inputsOf(folder, pairs, engine.info.maxTokens)
  const startedMs = performance.now()
  const outputs = await outputsOf(engine, inputs)
  const perTextMs = (performance.now() - startedMs) / inputs.length
  await engine.close()
  return { outputs, pairs, perTextMs }
}

const dot = (a: Float32Array, b: Float32Array): number =>
  a.reduce((sum, value, i) => sum + value * b[i]!, 0)

/** The cosines of all pairs of unit vectors. */
const cosines = (vectors: readonly Float32Array[]): readonly (readonly number[])[] =>
  vectors.map((a) => vectors.map((b) => dot(a, b)))

const nearest = (row: readonly number[], self: number): readonly number[] =>
  row
    .map((_, i) => i)
    .filter((i) => i !== self)
    .sort((a, b) => row[b]! - row[a]!)
    .slice(0, neighbours)

const mean = (numbers: readonly number[]): number =>
  numbers.reduce((sum, value) => sum + value, 0) / numbers.length

const vectorRows = (exact: readonly Float32Array[], coarse: readonly Float32Array[]) => {
  const own = exact.map((vector, i) => dot(vector, coarse[i]!))
  const [left, right] = [cosines(exact), cosines(coarse)]
  const above = (rows: readonly (readonly number[])[]) => rows.flatMap((row, i) => row.slice(i + 1))
  const shared = left.map((row, i) => {
    const found = new Set(nearest(right[i]!, i))
    return nearest(row, i).filter((other) => found.has(other)).length / neighbours
  })
  return [
    ["cosine to the vector in fp32, mean", mean(own).toFixed(5)],
    ["the least one", Math.min(...own).toFixed(5)],
    ["Spearman of the cosines of all pairs", spearman(above(left), above(right)).toFixed(5)],
    [`shared among the ${neighbours} nearest`, `${(100 * mean(shared)).toFixed(1)} %`],
  ]
}

const scoreRows = (exact: readonly Float32Array[], coarse: readonly Float32Array[]) => {
  const scores = (logits: readonly Float32Array[]) => logits.map(([x]) => 1 / (1 + Math.exp(-x!)))
  const [left, right] = [scores(exact), scores(coarse)]
  const gaps = left.map((score, i) => Math.abs(score - right[i]!))
  return [
    ["gap to the score in fp32, mean", mean(gaps).toFixed(5)],
    ["the largest one", Math.max(...gaps).toFixed(5)],
    ["Spearman of the scores", spearman(left, right).toFixed(5)],
  ]
}

/** Weights of the graphs in a cache. */
const megabytesIn = (graphs: string): number =>
  readdirSync(graphs)
    .filter((name) => name !== "known")
    .reduce((sum, name) => sum + statSync(join(graphs, name, "weights.bin")).size, 0) / 1e6

const measure = async (folder: string): Promise<void> => {
  const graphs = mkdtempSync(join(tmpdir(), "rakit-encoder-precision-"))
  try {
    const exact = await outputsIn(folder, join(graphs, "fp32"), "fp32")
    const coarse = await outputsIn(folder, join(graphs, "int8"), "int8")
    const rows = (exact.pairs ? scoreRows : vectorRows)(exact.outputs, coarse.outputs)
    const size = (name: string) => figure(megabytesIn(join(graphs, name)))
    printTable(
      `${folder}: int8 against fp32, ${count} ${exact.pairs ? "pairs" : "sentences"}`,
      ["", "int8"],
      [
        ...rows,
        ["weights MB (fp32)", `${size("int8")} (${size("fp32")})`],
        ["ms a text, 1 thread (fp32)", `${figure(coarse.perTextMs)} (${figure(exact.perTextMs)})`],
      ],
    )
  } finally {
    rmSync(graphs, { recursive: true, force: true })
  }
}

const startedMs = performance.now()
const folders = process.argv.slice(2)
if (!folders.length)
  throw new Error("name a folder with config.json, tokenizer.json and model.safetensors")
printMachine("Loss of encoders in 8 bits", "the sources, through tsx")
for (const folder of folders) await measure(folder)
printLoadAfter(startedMs)
